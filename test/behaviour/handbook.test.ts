/**
 * Runs what README and handbook say can be run, against one installation. In a page, a block "sh run" is run as it
 * stands and in order, in one shell; a block with "file=NAME" is written beforehand; a block "text prints" must be
 * what the block before it printed, where "…" stands for anything. The addresses of the defaults are replaced by
 * those of this run.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readPages } from '../../src/handbook/read-pages.ts'
import { executable, repository } from '../support/executable.ts'
import { cleanEnvironment, type Gatehouse, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(120_000)

let gatehouse: Gatehouse
const directory = mkdtempSync(join(tmpdir(), 'gatehouse-handbook-'))

beforeAll(async () => {
  gatehouse = await startGatehouse()
  mkdirSync(join(directory, 'bin'))
  symlinkSync(await executable(), join(directory, 'bin/gatehouse'))
})

afterAll(async () => {
  await gatehouse.stop()
  rmSync(directory, { recursive: true, force: true })
})

interface Block {
  info: string
  text: string
}

const blocksOf = (markdown: string): Block[] =>
  [...markdown.matchAll(/^```(\S+ [^\n]+)\n([\s\S]*?)^```$/gm)].map(([, info = '', text = '']) => ({ info, text }))

const pages = [
  { path: 'README.md', text: await Bun.file(join(repository, 'README.md')).text() },
  ...(await readPages()),
]
  .map(({ path, text }) => ({ path, blocks: blocksOf(text) }))
  .filter(({ blocks }) => blocks.some(({ info }) => info === 'sh run'))

async function shell(script: string, cwd: string): Promise<string> {
  const running = Bun.spawn(['sh', '-c', script], {
    cwd,
    env: cleanEnvironment({
      PATH: `${join(directory, 'bin')}:${process.env.PATH}`,
      SERVICE_API_URL: gatehouse.baseUrl,
      SERVICE_API_TOKEN: gatehouse.adminToken,
    }),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, notes, code] = await Promise.all([
    new Response(running.stdout).text(),
    new Response(running.stderr).text(),
    running.exited,
  ])
  if (code !== 0) throw new Error(`A snippet ended with ${code}:\n${notes}\n${out}`)
  return out
}

const separator = '\u0001'

/** Runs a page's snippets in a folder of its own; gives what each printed. */
async function run(path: string, blocks: readonly Block[]): Promise<string[]> {
  const folder = mkdtempSync(join(directory, 'page-'))
  for (const { info, text } of blocks) {
    const [, file] = /file=(\S+)/.exec(info) ?? []
    if (file !== undefined) writeFileSync(join(folder, file), text)
  }
  const snippets = blocks
    .filter(({ info }) => info === 'sh run')
    .map(({ text }) =>
      text
        .replaceAll('http://127.0.0.1:7080', gatehouse.gatewayUrl)
        .replaceAll('http://127.0.0.1:7070', gatehouse.baseUrl),
    )
  const printed = await shell(`set -eu\n${snippets.join(`\nprintf '${separator}'\n`)}`, folder).catch((error) => {
    throw new Error(`${path}: ${error.message}`)
  })
  // What a page put into force must not meet the next one.
  writeFileSync(join(folder, 'none.yaml'), 'policies: []\n')
  await shell('gatehouse apply -f none.yaml --prune --yes', folder)
  return printed.split(separator)
}

/** Whether each expected line was printed, in order; `…` stands for anything. */
function prints(printed: string, expected: string): boolean {
  const pattern = expected
    .trimEnd()
    .split('\n')
    .map((line) => line.trimEnd().split('…').map(RegExp.escape).join('.*'))
    .join('[\\s\\S]*?')
  return new RegExp(pattern).test(printed)
}

test('the README, the first pages and each policy page have snippets to run', () => {
  const paths = pages.map(({ path }) => path)
  for (const path of ['README.md', 'first-hour', 'tokens', 'limits-and-budgets', 'attribution', 'policies']) {
    expect(paths).toContain(path)
  }
  expect(paths.filter((path) => path.startsWith('policies/')).length).toBe(16)
})

test.each(pages.map(({ path, blocks }) => [path, blocks] as const))(
  'the snippets of %s run as they stand',
  async (path, blocks) => {
    const printed = await run(path, blocks)
    expect(printed.filter((text) => text.includes('"error":'))).toEqual([])
    let runs = -1
    for (const { info, text } of blocks) {
      if (info === 'sh run') runs += 1
      if (info === 'text prints' && !prints(printed[runs] ?? '', text)) expect(printed[runs]).toBe(text)
    }
  },
)

test('the executable serves the handbook with search and shows a page in the terminal', async () => {
  for (const path of ['', '/policies/pii', '/reference/errors', '/search?q=revoke']) {
    const response = await fetch(`${gatehouse.baseUrl}/docs/handbook${path}`)
    expect([path, response.status]).toEqual([path, 200])
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(await response.text()).toContain('<main>')
  }
  expect((await fetch(`${gatehouse.baseUrl}/docs/handbook/none`)).status).toBe(404)
  expect(await shell('gatehouse help', directory)).toContain('first-hour')
  expect(await shell('gatehouse help tokens', directory)).toContain('Revoke')
})
