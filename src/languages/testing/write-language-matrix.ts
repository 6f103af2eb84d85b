/** Writes `languages.md` anew, for whoever has changed what a language can say. */
import { renderLanguages } from '../translation/matrix.ts'

await Bun.write(new URL('../languages.md', import.meta.url), renderLanguages())
