/* The modified-NN builds are this switch with one injected deviation each: -DDEVIATION=NN.
 * DEVIATIONS.md, beside this file, says what each is and how it shows. */
#ifndef DEVIATION_H
#define DEVIATION_H

#ifndef DEVIATION
#define DEVIATION 0
#endif

#define DEVIATES(number) (DEVIATION == (number))

#endif
