/**
 * Cuts an SQL text into its statements, so that they can run as one batch: over HTTP a text of several is no
 * transaction. A trigger's body has semicolons of its own and ends with `; end ;`, as in sqlite3_complete().
 */

const token = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|;|\w+|\s+|[\s\S]/g
const ignored = /^(--|\/\*|\s)/

/** The statements of a text, in order, each without the semicolon that ends it; comments alone are none. */
export function splitStatements(sql: string): string[] {
  const statements: string[] = []
  let text = ''
  let words: string[] = []
  for (const [found] of sql.matchAll(token)) {
    if (ignored.test(found)) {
      text += found
      continue
    }
    if (found === ';' && (!isTrigger(words) || endsTrigger(words))) {
      if (words.length > 0) statements.push(text.trim())
      text = ''
      words = []
      continue
    }
    text += found
    words.push(found.toLowerCase())
  }
  if (words.length > 0) statements.push(text.trim())
  return statements
}

const isTrigger = ([create, second, third]: readonly string[]): boolean =>
  create === 'create' && (second === 'trigger' || (/^temp(orary)?$/.test(second ?? '') && third === 'trigger'))

const endsTrigger = (words: readonly string[]): boolean => words.at(-1) === 'end' && words.at(-2) === ';'
