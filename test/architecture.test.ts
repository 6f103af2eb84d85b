/** The shape of the code, read from its import statements and file names: what a review would have to look for. */
import { expect, test } from 'bun:test'
import { basename, dirname, join, relative, resolve } from 'node:path'

const repository = resolve(import.meta.dir, '..')

/**
 * Who may import whom; a type import is free. `cli` and `src` stand for the files directly in them; the composition
 * roots in `src/app` may import all.
 */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  'failure.ts': [],
  'version.ts': [],
  'config.ts': ['failure.ts', 'lib'],
  store: ['failure.ts', 'lib'],
  dialects: ['failure.ts', 'lib'],
  inspection: ['failure.ts', 'lib'],
  translation: ['dialects', 'failure.ts', 'lib'],
  mcp: ['store', 'failure.ts', 'version.ts', 'lib', 'api', 'events', 'tokens', 'providers'],
  policies: ['store', 'failure.ts', 'lib', 'api', 'events', 'tokens', 'dialects', 'inspection'],
  escalations: ['store', 'failure.ts', 'lib', 'api', 'events', 'tokens'],
  usage: ['store', 'failure.ts', 'lib', 'api', 'events', 'tokens', 'providers'],
  providers: [
    'store',
    'failure.ts',
    'lib',
    'api',
    'events',
    'identity/principal.ts',
    'identity/free-text.ts',
    'languages/reading/json-value.ts',
    'translation',
  ],
  api: [
    'failure.ts',
    'version.ts',
    'lib',
    'identity/challenge.ts',
    'identity/delegation.ts',
    'identity/permissions.ts',
    'identity/principal.ts',
    'identity/secret.ts',
    'store',
  ],
  events: [
    'store',
    'failure.ts',
    'lib',
    'api',
    'identity/permissions.ts',
    'identity/principal.ts',
    'escalations/arrivals.ts',
  ],
  tokens: ['store', 'failure.ts', 'config.ts', 'lib', 'api', 'events', 'fleet/protocol/wire.ts'],
  members: ['store', 'failure.ts', 'lib', 'api', 'events', 'tokens'],
  oauth: ['store', 'failure.ts', 'lib', 'api', 'events', 'tokens', 'members', 'config.ts'],
  fleet: ['store', 'failure.ts', 'version.ts', 'lib', 'api', 'events', 'tokens', 'providers', 'policies', 'usage'],
  gateway: [
    'policies',
    'inspection',
    'translation',
    'mcp',
    'usage',
    'dialects',
    'providers',
    'tokens',
    'fleet',
    'events',
    'oauth/metadata/protected-resource.ts',
    'failure.ts',
    'version.ts',
    'lib',
    'telemetry',
  ],
  telemetry: ['events', 'version.ts', 'lib'],
  console: ['failure.ts', 'api'],
  doctor: ['fleet', 'lib', 'version.ts', 'config.ts', 'store/open-beside.ts'],
  cli: [
    'config.ts',
    'failure.ts',
    'version.ts',
    'lib',
    'console/bundle.ts',
    // What apply checks before it changes anything.
    'policies/policy-body.ts',
    'mcp/catalog/server-body.ts',
    'mcp/servers/server-reach.ts',
    // Of what an account of limits is, for its unit.
    'usage/account-name.ts',
    // How far a window reaches that is followed.
    'events/query/since.ts',
  ],
}

/** The command line may reach them, and only when it runs. */
const compositionRoots = 'app'
/** Matching paths and the page that the Elysia plugin writes. */
const elysiaFiles = ['src/api/router.ts', 'src/api/documentation.ts']
const bannedNames = /^(utils?|helpers?|services?|managers?|types|common|misc)$/
/**
 * The entry, interfaces (whose imports are free) with an implementation beside them that does nothing, and what writes a
 * document that a test holds current.
 */
const testsAlone = [
  'cli/main.ts',
  'src/lib/log/log.ts',
  'src/tokens/limits/depletion.ts',
  'src/languages/translation/matrix.ts',
]
const lineLimit = 350

interface Import {
  kind: string
  path: string
}

interface Source {
  path: string
  text: string
  imports: readonly Import[]
}

const scanners = { ts: new Bun.Transpiler({ loader: 'ts' }), tsx: new Bun.Transpiler({ loader: 'tsx' }) }

async function read(pattern: string): Promise<Source[]> {
  const paths = [...new Bun.Glob(pattern).scanSync({ cwd: repository })].toSorted()
  return await Promise.all(
    paths.map(async (path) => {
      const text = await Bun.file(join(repository, path)).text()
      const scanner = path.endsWith('x') ? scanners.tsx : scanners.ts
      return { path, text, imports: scanner.scanImports(text.replace(/^#!.*/, '')) }
    }),
  )
}

const sources = await read('{src,cli}/**/*.{ts,tsx}')
const tests = await read('test/**/*.ts')
const isTest = (path: string): boolean => /\.test\.ts$/.test(path)
/** Tests and what only they import: such files are named `test-…` or `temporary-…`. */
const product = sources.filter(({ path }) => !/\.test\.ts$|\/(test-|temporary)[^/]*$/.test(path))

/** A file's place in the table: `tokens`, `failure.ts`, `cli`. */
function area(path: string): string {
  const [top = '', second = ''] = path.split('/')
  return top === 'src' ? second : top
}

const target = (from: string, path: string): string => relative(repository, resolve(repository, dirname(from), path))

/** Whether a row lets a file be imported: by its whole area, or by the file's own name within it. */
const allows = (row: readonly string[] | undefined, path: string): boolean =>
  row?.some((entry) => entry === area(path) || `src/${entry}` === path) ?? false

test('every folder imports only what the table allows', () => {
  const broken = product
    .filter(({ path }) => area(path) !== compositionRoots)
    .flatMap(({ path, imports }) =>
      imports
        .filter(({ path: imported }) => imported.startsWith('.'))
        .map((found) => ({ kind: found.kind, to: target(path, found.path) }))
        .filter(({ to }) => area(to) !== area(path) && !to.startsWith('node_modules/'))
        .filter(({ to, kind }) => !(area(path) === 'cli' && area(to) === compositionRoots && kind === 'dynamic-import'))
        .filter(({ to }) => !allows(mayImport[area(path)], to))
        .map(({ to }) => `${path} -> ${to}`),
    )
  expect(broken).toEqual([])
})

test('every folder has its row in the table', () => {
  const areas = new Set(product.map(({ path }) => area(path)))
  const missing = [...areas].filter((name) => name !== compositionRoots && mayImport[name] === undefined)
  expect(missing).toEqual([])
})

test('what must know nothing of the product knows nothing of it', () => {
  const rows = ['lib', 'failure.ts', 'version.ts'].flatMap((name) => mayImport[name])
  expect(rows).toEqual([])
})

test('the browser part of the console takes nothing but types from the server', () => {
  const inBrowser = 'src/console/browser/'
  const broken = product
    .filter(({ path }) => path.startsWith(inBrowser))
    .flatMap(({ path, imports }) => imports.map((found) => ({ path, to: found.path })))
    .filter(({ path, to }) => (to.startsWith('.') ? !target(path, to).startsWith(inBrowser) : to === 'zod'))
    .map(({ path, to }) => `${path} -> ${to}`)
  expect(broken).toEqual([])
})

test('Elysia is known to the place that matches paths, and to no other', () => {
  const users = product
    .filter(({ imports }) => imports.some(({ path }) => path === 'elysia' || path.startsWith('@elysiajs/')))
    .map(({ path }) => path)
  expect(users.filter((path) => !elysiaFiles.includes(path))).toEqual([])
})

test('libSQL is imported by the files that open databases, and by the build', () => {
  const users = product
    .filter(({ imports }) => imports.some(({ path }) => path === 'libsql' || path.startsWith('@libsql/')))
    .map(({ path }) => path)
  const known = [
    'src/store/open.ts',
    'src/store/local-connection.ts',
    'src/store/open-replica.ts',
    'src/store/remote.ts',
    'cli/build.ts',
  ]
  expect(users.filter((path) => !known.includes(path))).toEqual([])
})

test('relative imports name the file they mean', () => {
  const vague = [...sources, ...tests].flatMap(({ path, imports }) =>
    imports
      .filter((found) => found.path.startsWith('.') && !/\.(tsx?|sql|json|css|html|node|js)$/.test(found.path))
      .map((found) => `${path} -> ${found.path}`),
  )
  expect(vague).toEqual([])
})

test('no file only passes on what others export', () => {
  const barrels = sources.filter(({ text }) => /^export \* from /m.test(text)).map(({ path }) => path)
  expect(barrels).toEqual([])
})

test('what only tests import is named as theirs', () => {
  const importers = new Map<string, string[]>()
  for (const { path, imports } of [...sources, ...tests]) {
    for (const found of imports.filter(({ path: imported }) => imported.startsWith('.'))) {
      const to = target(path, found.path)
      importers.set(to, [...(importers.get(to) ?? []), path])
    }
  }
  const inProduct = new Set(product.map(({ path }) => path))
  const unnamed = [...inProduct].filter((path) => {
    const users = importers.get(path) ?? []
    return users.length > 0 && !testsAlone.includes(path) && !users.some((user) => inProduct.has(user))
  })
  expect(unnamed).toEqual([])
})

test('every file is named after what it holds', () => {
  const named = [...sources, ...tests].filter(({ path }) =>
    bannedNames.test(basename(path).replace(/(\.test)?\.tsx?$/, '')),
  )
  expect(named.map(({ path }) => path)).toEqual([])
})

test('a file that is longer than others says why in its header', () => {
  const long = [...sources, ...tests]
    .filter(({ text }) => text.split('\n').length > lineLimit)
    .map(({ path, text }) => ({ path, header: /^(#!.*\n)?(\/\*\*[\s\S]*?\*\/)/.exec(text)?.[2] ?? '' }))
  const silent = long.filter(({ path, header }) => !(isTest(path) ? header !== '' : /longer than most/i.test(header)))
  expect(silent.map(({ path }) => path)).toEqual([])
})

test('nothing is left half done or silenced', () => {
  const marks = /\b(TODO|FIXME|XXX|HACK)\b|@ts-ignore|@ts-nocheck|\bit\.only\(|\btest\.only\(/
  const self = 'test/architecture.test.ts'
  const marked = [...sources, ...tests].filter(({ path, text }) => path !== self && marks.test(text))
  expect(marked.map(({ path }) => path)).toEqual([])
})
