/** Reads the handbook's pages from their files: where the sources are, which is the build and the tests. */
import { join } from 'node:path'

/** A page of the handbook. */
export interface HandbookPage {
  /** `index`, `tokens`, `policies/pii`. */
  path: string
  /** Its first heading, without code marks. */
  title: string
  /** Its Markdown. */
  text: string
}

export async function readPages(): Promise<HandbookPage[]> {
  const found = await Array.fromAsync(new Bun.Glob('**/*.md').scan(import.meta.dir))
  // The README is for those who change the handbook.
  const files = found.filter((file) => file !== 'README.md')
  return await Promise.all(
    files.toSorted().map(async (file) => {
      const text = await Bun.file(join(import.meta.dir, file)).text()
      const [, title = file] = /^# (.*)$/m.exec(text) ?? []
      return { path: file.replace(/\.md$/, ''), title: title.replaceAll('`', ''), text }
    }),
  )
}
