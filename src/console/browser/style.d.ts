/** Styles are bundled by being imported; they give nothing. */
declare module '*.css'
