/** What each client is given, as files; `UPDATE_GOLDEN=1` writes them anew. */
import { expect, test } from 'bun:test'
import { readMembers } from '../../cli/commands/connect/formats.ts'
import { setupText } from '../../cli/commands/connect/show.ts'
import { recipes } from '../../src/clients/index.ts'
import type { Connection } from '../../src/clients/recipe.ts'
import { expectGolden } from './golden-file.ts'

const connection: Connection = {
  gatewayUrl: 'https://gateway.example.com',
  models: ['claude-sonnet-4-5', 'gpt-4o-mini'],
  token: 'gth_000000000000000000000000000000000000',
  tokenFile: null,
}
const tokenFile = "/home/o'neil/.config/gatehouse/clients/x.token"

test('each client is given its own configuration, printed and written', async () => {
  for (const recipe of recipes) {
    const printed = setupText(recipe, recipe.setup(connection))
    const written = setupText(recipe, recipe.setup({ ...connection, tokenFile }))
    const parts = printed === written ? [printed] : [printed, `# With --write\n\n${written}`]
    await expectGolden(`client/${recipe.name}.txt`, parts.join('\n'))
  }
})

test('each client can be connected without a model, unless it says that it needs one', () => {
  for (const recipe of recipes.filter(({ needsModel }) => needsModel !== true)) {
    expect(setupText(recipe, recipe.setup({ ...connection, models: [] }))).not.toContain('undefined')
  }
})

test('each file has its format, and holds the address or a choice', () => {
  const files = recipes.flatMap((recipe) => recipe.setup({ ...connection, tokenFile }).files)
  expect(files.length).toBeGreaterThanOrEqual(9)
  for (const { path, text, keeps = [] } of files) {
    const members = readMembers(path, text)
    expect(Object.keys(members).length).toBeGreaterThan(0)
    expect(Object.keys(members)).toEqual(expect.arrayContaining([...keeps]))
  }
})

test('a secret stands in no file of a client that reads one from a command or a file', () => {
  const holding = recipes.filter((recipe) => {
    const { files } = recipe.setup({ ...connection, tokenFile })
    return files.some(({ text }) => text.includes(connection.token))
  })
  expect(holding.map(({ name }) => name)).toEqual(['gemini-cli', 'cline', 'aider', 'continue'])
})

test('the handbook says of each client what it gets', async () => {
  const page = await Bun.file(new URL('../../src/handbook/clients.md', import.meta.url)).text()
  expect(recipes.filter(({ name }) => !page.includes(`| \`${name}\` |`))).toEqual([])
})
