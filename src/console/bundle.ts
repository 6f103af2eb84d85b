/**
 * Bundles the browser app: `browser/main.tsx`, what it imports later on, its style and its icon into files whose names
 * hold a hash of their content. Runs where the sources are: in the build of the executable, which embeds the result, and
 * in tests that start a control plane from source.
 */
import { join } from 'node:path'

/** A file that the console's page asks for. */
export interface ConsoleAsset {
  /** `main-3k2j1h.js`: another content has another name, so a browser may keep it for ever. */
  name: string
  /** Its media type. */
  type: string
  text: string
}

const entry = join(import.meta.dir, 'browser/main.tsx')
const icon = join(import.meta.dir, 'browser/icon.svg')

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

/** Throws an `AggregateError` where a source does not compile. */
export async function bundleConsole(): Promise<ConsoleAsset[]> {
  const { outputs } = await Bun.build({
    entrypoints: [entry],
    target: 'browser',
    format: 'esm',
    minify: true,
    splitting: true,
    naming: '[name]-[hash].[ext]',
    define: { 'process.env.NODE_ENV': '"production"' },
  })
  const built = await Promise.all(
    outputs.map(async (output) => assetOf(output.path.replace(/^.*\//, ''), await output.text())),
  )
  const drawing = await Bun.file(icon).text()
  return [...built, assetOf(`icon-${Bun.hash(drawing).toString(36)}.svg`, drawing)]
}

function assetOf(name: string, text: string): ConsoleAsset {
  const type = types[name.slice(name.lastIndexOf('.') + 1)]
  if (type === undefined) throw new Error(`The console's bundle has a file of an unexpected kind: ${name}`)
  return { name, type, text }
}
