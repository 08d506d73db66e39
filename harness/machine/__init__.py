"""Execute a frozen process: VEX blocks compiled to Python over integers and symbolic pairs."""
