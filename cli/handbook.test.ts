import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { policyKinds } from '../src/policies/kinds/index.ts'
import { handbookFolder, referencePages, withConfigTables } from '../test/support/handbook-reference.ts'
import { argumentsOf, checkArguments, findCommand, subCommandsOf } from './command/command.ts'
import { gatehouse } from './main.ts'
import { recordingTerminal } from './testing/terminal.ts'

const page = (path: string): Promise<string> => Bun.file(new URL(path, handbookFolder)).text()
const paths = readdirSync(fileURLToPath(handbookFolder), { recursive: true, encoding: 'utf8' }).filter(
  (path) => path.endsWith('.md') && path !== 'README.md',
)
const repository = new URL('../', import.meta.url)
const readme = await Bun.file(new URL('README.md', repository)).text()
const texts = await Promise.all(paths.map(async (path) => ({ path: `src/handbook/${path}`, text: await page(path) })))
const documents = [...texts, { path: 'README.md', text: readme }]

test('the reference pages match the code (regenerate: bun test/support/handbook-reference.ts)', async () => {
  for (const [path, text] of Object.entries(await referencePages())) expect(await page(path)).toBe(text)
})

test('each policy kind has a page with its configuration and an example (write the tables anew as above)', async () => {
  for (const kind of policyKinds.keys()) {
    const text = await page(`policies/${kind}.md`)
    expect(text).toBe(withConfigTables(text))
    expect(text).toContain(`kind: ${kind}\n`)
    expect(await page('policies.md')).toContain(`(policies/${kind}.md)`)
  }
})

test('the handbook names every command', async () => {
  const reference = await page('reference/commands.md')
  for (const [name, command] of await subCommandsOf(gatehouse(recordingTerminal()))) {
    const children = await subCommandsOf(command)
    const all = children.length > 0 ? children.map(([child]) => `${name} ${child}`) : [name]
    for (const path of all) expect(reference).toContain(`## \`gatehouse ${path}`)
  }
})

test('the table of contents names every page that is not a policy kind', async () => {
  const contents = await page('index.md')
  const named = paths.filter((path) => path !== 'index.md' && !path.startsWith('policies/'))
  expect(named.filter((path) => !contents.includes(`](${path})`))).toEqual([])
})

test('every link between documents leads to a file', async () => {
  const links = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, link = '']) => ({ path, link })),
  )
  expect(links.length).toBeGreaterThan(50)
  const broken: typeof links = []
  for (const each of links) {
    if (!(await Bun.file(new URL(each.link, new URL(each.path, repository))).exists())) broken.push(each)
  }
  expect(broken).toEqual([])
})

test('every file of the source that a document names is there', async () => {
  const named = documents.flatMap(({ text }) =>
    [...text.matchAll(/`((?:cli|src|test)\/[\w/-]+\.(?:test\.)?(?:ts|md))`/g)].map(([, path]) => path ?? ''),
  )
  expect(named.length).toBeGreaterThan(20)
  const present = await Promise.all(named.map((path) => Bun.file(new URL(path, repository)).exists()))
  expect(named.filter((_, index) => !present[index])).toEqual([])
})

test('the README has at most 200 lines', () => {
  expect(readme.split('\n').length).toBeLessThanOrEqual(201)
})

/** The words of a line as a shell would part them; what is substituted stays as it is written. */
const words = (line: string): string[] =>
  [...line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) => word.replaceAll(/['"]/g, ''))

/** The commands of this product in a block: `gatehouse …`, up to a pipe, a redirection or the end of a substitution. */
function commandLines(block: string): string[][] {
  const joined = block.replaceAll(/\\\n\s*/g, ' ')
  return [
    ...joined.matchAll(
      /(?:^|[$][(]|&& )(?:[A-Z_]+=(?:"[^"]*"|\S*) )*(?:dist\/)?gatehouse ((?:'[^']*'|"[^"]*"|[^\n|><)'"&;])*)/gm,
    ),
  ].map(([, rest = '']) => words(rest.replace(/ #.*$/, '')))
}

test('every command line in a document is valid', async () => {
  const wrong: string[] = []
  let checked = 0
  for (const { path, text } of documents) {
    for (const [, block = ''] of text.matchAll(/^```sh[^\n]*\n([\s\S]*?)^```$/gm)) {
      for (const line of commandLines(block)) {
        checked += 1
        const fault = await faultOf(line)
        if (fault !== null) wrong.push(`${path}: gatehouse ${line.join(' ')}: ${fault}`)
      }
    }
  }
  expect(wrong).toEqual([])
  expect(checked).toBeGreaterThan(80)
})

test('a field that a document clears is written as its option', () => {
  const cleared = documents.flatMap(({ text }) => [...text.matchAll(/--clear[= ]([\w-]+)/g)].map(([, field]) => field))
  expect(cleared).toContain('tool-limits')
  expect(cleared.filter((field) => field?.includes('_'))).toEqual([])
})

async function faultOf(line: readonly string[]): Promise<string | null> {
  try {
    const { command, rest } = await findCommand(gatehouse(recordingTerminal()), line, 'gatehouse')
    checkArguments(rest, await argumentsOf(command))
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
