/** What the compiler cannot see of the table of families: that names, paths and documents agree. */
import { expect, test } from 'bun:test'
import { join, resolve } from 'node:path'
import { families, familyNames, modelFamilies } from './families.ts'
import { dialects } from './index.ts'

const read = (page: string): Promise<string> => Bun.file(join(resolve(import.meta.dir, '../handbook'), page)).text()

test('each dialect has the name of its family', () => {
  expect(familyNames.map((name) => dialects[name].family)).toEqual([...familyNames])
})

test('no two families share a path', () => {
  const paths = familyNames.map((name) => families[name].path)
  expect(new Set(paths).size).toBe(paths.length)
})

for (const page of ['reference/http.md', 'policies.md']) {
  test(`${page} of the handbook names the path of every family that models answer`, async () => {
    const text = await read(page)
    expect(modelFamilies.filter((name) => !text.includes(families[name].path))).toEqual([])
  })
}
