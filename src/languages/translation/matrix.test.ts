import { expect, test } from 'bun:test'
import { renderLanguages } from './matrix.ts'

test("languages.md matches the languages' tables (regenerate: bun src/languages/testing/write-language-matrix.ts)", async () => {
  expect(await Bun.file(new URL('../languages.md', import.meta.url)).text()).toBe(renderLanguages())
})
