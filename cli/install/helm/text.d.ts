/** Files of the chart, imported with `with { type: 'text' }`. */
declare module '*.tpl' {
  const content: string
  export default content
}
