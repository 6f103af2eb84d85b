/** A migration, imported with `with { type: 'text' }`. */
declare module '*.sql' {
  const content: string
  export default content
}
