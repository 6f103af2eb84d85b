/** The shape of the code, read from its import statements and file names: what a review would have to look for. */
import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'

const repository = resolve(import.meta.dir, '..')

/**
 * The rooms of the house, from the ground up. A room imports rooms of lower floors only, types included. A room is a
 * folder or a file directly in `src`, or the command line.
 */
const floors: readonly (readonly string[])[] = [
  ['lib', 'failure.ts', 'version.ts'],
  ['clients', 'config.ts', 'handbook', 'reason-words.ts', 'store', 'languages'],
  ['backup', 'identity', 'inspection'],
  ['api'],
  ['events'],
  ['escalations', 'operation', 'providers', 'telemetry', 'tokens'],
  ['mcp', 'members', 'policies', 'sinks', 'usage', 'workloads'],
  ['alerts', 'connections', 'fleet', 'managed-settings', 'oauth'],
  ['console', 'doctor', 'gateway'],
  ['app'],
  ['cli'],
]

/** What a process must not load, whatever floor it stands on. */
const never: Readonly<Record<string, readonly string[]>> = {
  gateway: ['members', 'console', 'doctor', 'escalations', 'store'],
  doctor: ['gateway', 'console'],
}

/** Where Elysia is used: the conventions, the files of routes, and the lists of their plugins. */
const usesElysia = (path: string): boolean =>
  path.startsWith('src/api/') ||
  /(?:^|[/-])routes?\.ts$/.test(path) ||
  /\/routes\//.test(path) ||
  routeLists.includes(path)
const routeLists = [
  'src/events/proof/proof.ts',
  'src/fleet/coordinator/coordinator.ts',
  'src/fleet/coordinator/peers.ts',
  'src/oauth/metadata/metadata.ts',
]
/** A folder holds at most so many product files. */
const filesInFolder = 16
/** One file for each kind of policy, and for each part that screens are made of. */
const largerFolders: Readonly<Record<string, number>> = { 'src/policies/kinds': 24 }
const bannedNames = /^(utils?|helpers?|services?|managers?|types|common|misc)$/
/**
 * The entry, interfaces (whose imports are free) with an implementation beside them that does nothing, and what writes
 * a document.
 */
const testsAlone = [
  'cli/main.ts',
  'src/lib/log/log.ts',
  'src/tokens/limits/depletion.ts',
  'src/languages/translation/matrix.ts',
]
const lineLimit = 350
const sqlText =
  /[`'"]\s*(with (recursive )?\w+ (\(|as )|select\b[^;`]{0,600}?\bfrom \w|insert (or \w+ )?into \w|update [\w$.{}]+ set\b|delete from \w)/
/** Where SQL is text without a header that says why. */
const sqlTextIn: Readonly<Record<string, string>> = {
  'src/events/': 'the log and its sums: batches, recursion and index hints, each measured',
  'src/fleet/': 'gateways read with bun:sqlite; heartbeats and start-up loads are measured',
  'src/usage/': 'leases, rates and sums: one statement for many accounts, each measured',
  'src/store/': 'migrations, damaged files and the rows of limits, below the builder or read by gateways',
  'src/doctor/': 'reads with bun:sqlite',
  'src/app/': 'asks whether a database has tables, before it is migrated',
  'src/api/answer-store.ts': 'one statement claims a key, or gives the answer that it has',
}

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
/** Neither a test nor what only tests import, which stands in `testing` folders. */
const product = sources.filter(({ path }) => !isTest(path) && !path.includes('/testing/'))

/** The room of a file: `tokens`, `failure.ts`, `cli`. */
function room(path: string): string {
  const [top = '', second = ''] = path.split('/')
  return top === 'src' ? second : top
}

const floorOf = (name: string): number => floors.findIndex((rooms) => rooms.includes(name))

const target = (from: string, path: string): string => relative(repository, resolve(repository, dirname(from), path))

/** Every import of a file of this repository, of types too. `scanImports` leaves those out, so the text is read. */
function importsOf({ path, text }: Source): string[] {
  const found = text.matchAll(
    /^(?:import|export)\b[^'"]*?from '(\.[^']+)'|\bimport\('(\.[^']+)'\)|^import '(\.[^']+)'/gm,
  )
  return [...found].map(([, from, dynamic, bare]) => target(path, from ?? dynamic ?? bare ?? ''))
}

const graph = new Map(product.map((source) => [source.path, importsOf(source)]))

test('rooms import only rooms of lower floors', () => {
  const upward = [...graph].flatMap(([path, imported]) =>
    imported
      .filter((to) => room(to) !== room(path) && !to.startsWith('node_modules/'))
      .filter((to) => floorOf(room(to)) >= floorOf(room(path)))
      .map((to) => `${path} -> ${to}`),
  )
  expect(upward).toEqual([])
})

test('every room has a floor', () => {
  const rooms = new Set(product.map(({ path }) => room(path)))
  expect([...rooms].filter((name) => floorOf(name) < 0)).toEqual([])
  expect(floors.flat().filter((name) => !rooms.has(name))).toEqual([])
})

test('a process loads only its own rooms', () => {
  const broken = [...graph].flatMap(([path, imported]) =>
    imported.filter((to) => never[room(path)]?.includes(room(to))).map((to) => `${path} -> ${to}`),
  )
  expect(broken).toEqual([])
})

test('no files import each other in a circle', () => {
  expect(circles(graph)).toEqual([])
})

test('every folder holds at most the allowed number of files', () => {
  const counts = new Map<string, number>()
  for (const { path } of product) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1)
  const tooManyValues = [...counts].filter(([folder, count]) => count > (largerFolders[folder] ?? filesInFolder))
  expect(tooManyValues).toEqual([])
})

test('product code imports nothing from testing folders', () => {
  const broken = [...graph].flatMap(([path, imported]) =>
    imported.filter((to) => to.includes('/testing/') || to.startsWith('test/')).map((to) => `${path} -> ${to}`),
  )
  expect(broken).toEqual([])
})

test('the browser part of the console imports only types from the server, the recipes of clients and the words of reasons', () => {
  const inBrowser = 'src/console/browser/'
  const recipes = 'src/clients/'
  const shared = [inBrowser, recipes, 'src/reason-words.ts']
  const broken = product
    .filter(({ path }) => path.startsWith(inBrowser) || path.startsWith(recipes))
    .flatMap(({ path, imports }) => imports.map((found) => ({ path, to: found.path })))
    .filter(({ path, to }) => {
      if (path.startsWith(recipes)) return !to.startsWith('.') || !target(path, to).startsWith(recipes)
      return to.startsWith('.') ? !shared.some((room) => target(path, to).startsWith(room)) : to === 'zod'
    })
    .map(({ path, to }) => `${path} -> ${to}`)
  expect(broken).toEqual([])
})

test('only files of routes and the conventions of the API import Elysia', () => {
  const users = product
    .filter(({ imports }) => imports.some(({ path }) => path === 'elysia' || path.startsWith('@elysiajs/')))
    .map(({ path }) => path)
  expect(users.filter((path) => !usesElysia(path))).toEqual([])
})

test('only the named files import libSQL', () => {
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

test('the dependencies are the packages that product code imports', async () => {
  const { dependencies } = await Bun.file(join(repository, 'package.json')).json()
  const imported = new Set(
    product.flatMap(({ text }) =>
      [...text.matchAll(/(?:from|import|require)[ (]?'([^.'][^']*)'|'[./]*node_modules\/([^']+)'/g)].map(
        ([, name = '', file = '']) => /^(?:@[^/]+\/)?[^/]+/.exec(name || file)?.[0],
      ),
    ),
  )
  expect(Object.keys(dependencies).filter((name) => !imported.has(name))).toEqual([])
})

test('nothing is exported that no file uses', () => {
  const uses = new Map<string, number>()
  for (const { text } of [...sources, ...tests]) {
    for (const [name] of text.matchAll(/[A-Za-z_]\w*/g)) uses.set(name, (uses.get(name) ?? 0) + 1)
  }
  const exported = /^export (?:async )?(?:const|let|function\*?|class|interface|type) (\w+)/gm
  // Tables are imported together, as a schema.
  const candidates = product.filter(({ path }) => !path.startsWith('src/store/schema/'))
  const unused = candidates.flatMap(({ path, text }) =>
    [...text.matchAll(exported)].filter(([, name = '']) => uses.get(name) === 1).map(([, name]) => `${path}: ${name}`),
  )
  expect(unused).toEqual([])
})

test('SQL text stands where a header or this list says why; other queries are built', () => {
  const written = product.filter(({ text }) => sqlText.test(text.replaceAll(/\/\*[\s\S]*?\*\//g, '')))
  const listed = (path: string) => Object.keys(sqlTextIn).find((place) => path.startsWith(place))
  const says = (text: string) => /^(#!.*\n)?\/\*\*[\s\S]*?\bSQL text: [\s\S]*?\*\//.test(text)
  const unexplained = written.filter(({ path, text }) => listed(path) === undefined && !says(text))
  expect(unexplained.map(({ path }) => path)).toEqual([])
  const places = new Set(written.map(({ path }) => listed(path)))
  expect(Object.keys(sqlTextIn).filter((place) => !places.has(place))).toEqual([])
})

test('relative imports name an existing file with its extension', () => {
  const vague = [...sources, ...tests].flatMap(({ path, imports }) =>
    imports
      .filter(
        (found) => found.path.startsWith('.') && !/\.(tsx?|sql|json|yaml|tpl|txt|css|html|node|js)$/.test(found.path),
      )
      .map((found) => `${path} -> ${found.path}`),
  )
  expect(vague).toEqual([])
})

test('no file only re-exports others', () => {
  const barrels = sources.filter(({ text }) => /^export \* from /m.test(text)).map(({ path }) => path)
  expect(barrels).toEqual([])
})

test('test-only modules stand in testing folders', () => {
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

test('a file is named after one of its exports', () => {
  const named = [...sources, ...tests].filter(({ path }) =>
    bannedNames.test(basename(path).replace(/(\.test)?\.tsx?$/, '')),
  )
  expect(named.map(({ path }) => path)).toEqual([])
})

test('a file above the line limit states the reason in its header', () => {
  const long = [...sources, ...tests]
    .filter(({ text }) => text.split('\n').length > lineLimit)
    .map(({ path, text }) => ({ path, header: /^(#!.*\n)?(\/\*\*[\s\S]*?\*\/)/.exec(text)?.[2] ?? '' }))
  const silent = long.filter(({ path, header }) => !(isTest(path) ? header !== '' : /longer than most/i.test(header)))
  expect(silent.map(({ path }) => path)).toEqual([])
})

test("each room's README names every file or folder in it", () => {
  const present = [...new Bun.Glob('{src,cli,test}/**/README.md').scanSync({ cwd: repository })].toSorted()
  const rooms = [...new Set(product.map(({ path }) => room(path)).filter((name) => !name.includes('.')))]
  const readmeOf = (name: string): string => (name === 'cli' ? 'cli/README.md' : `src/${name}/README.md`)
  expect([...rooms.map(readmeOf), 'test/README.md'].filter((path) => !present.includes(path))).toEqual([])
  expect(present.flatMap(unnamedIn)).toEqual([])
})

test('README links lead to existing files and headings', () => {
  const present = [...new Bun.Glob('{src,cli,test}/**/README.md').scanSync({ cwd: repository })]
  const dead = present.flatMap((path) =>
    [...textOf(path).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)]
      .map(([, link = '', heading = '']) => ({ to: link === '' ? path : join(dirname(path), link), heading }))
      .filter(({ to, heading }) => !existsSync(join(repository, to)) || (heading !== '' && !hasHeading(to, heading)))
      .map(({ to, heading }) => `${path} -> ${to} ${heading}`),
  )
  expect(dead).toEqual([])
})

test('comments cite existing documents and rules', () => {
  const cited = [...sources, ...tests].flatMap(({ path, text }) => {
    const joined = text.replaceAll(/\n\s*(?:\*|\/\/) ?/g, ' ')
    const found = joined.matchAll(/(?<![\w./-])((?:[\w-]+\/)+README\.md)(?: rules? ((?:R?\d+(?:, | and )?)+))?/g)
    return [...found].map(([, document = '', rules = '']) => ({ path, document, rules: rules.match(/R?\d+/g) ?? [] }))
  })
  const wrong = cited.filter(({ document, rules }) => {
    const place = [`src/${document}`, document].find((name) => existsSync(join(repository, name)))
    if (place === undefined) return true
    return rules.some((rule) => !new RegExp(`^#+ Rule ${rule}:`, 'm').test(textOf(place)))
  })
  expect(wrong.map(({ path, document, rules }) => `${path}: ${document} ${rules.join(', ')}`)).toEqual([])
})

test('no file holds a TODO, a stub or a silenced check', () => {
  const marks = /\b(TODO|FIXME|XXX|HACK)\b|@ts-ignore|@ts-nocheck|\bit\.only\(|\btest\.only\(/
  const self = 'test/architecture.test.ts'
  const marked = [...sources, ...tests].filter(({ path, text }) => path !== self && marks.test(text))
  expect(marked.map(({ path }) => path)).toEqual([])
})

/** What a README's folder holds and the README does not name: files beside tests, and folders. */
function unnamedIn(path: string): string[] {
  const folder = dirname(path)
  const text = textOf(path)
  return readdirSync(join(repository, folder), { withFileTypes: true })
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .filter((name) => name !== 'README.md' && (folder === 'test' || !/\.test\.tsx?$/.test(name)))
    .filter((name) => !names(text, name))
    .map((name) => `${path}: ${name}`)
}

const textOf = (path: string): string => readFileSync(join(repository, path), 'utf8')

/** Whether a document has a heading that is linked as `what-it-says`. */
const hasHeading = (path: string, wanted: string): boolean =>
  [...textOf(path).matchAll(/^#+ (.*)$/gm)].some(
    ([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-') === wanted,
  )

/** In code quotes, or as a link; a folder by its own README too. */
const names = (text: string, name: string): boolean =>
  [`\`${name}\``, `](${name})`, `](${name}README.md)`].some((form) => text.includes(form))

/** Groups of files that reach each other (Tarjan, SIAM Journal on Computing 1(2), 1972). */
function circles(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const open: string[] = []
  const found: string[][] = []
  const visit = (file: string): void => {
    order.set(file, order.size)
    lowest.set(file, order.size - 1)
    open.push(file)
    for (const to of imports.get(file) ?? []) {
      if (!imports.has(to)) continue
      if (!order.has(to)) visit(to)
      else if (!open.includes(to)) continue
      lowest.set(file, Math.min(lowest.get(file) ?? 0, lowest.get(to) ?? 0))
    }
    if (lowest.get(file) !== order.get(file)) return
    const circle = open.splice(open.indexOf(file))
    if (circle.length > 1) found.push(circle.toSorted())
  }
  for (const file of imports.keys()) if (!order.has(file)) visit(file)
  return found
}
