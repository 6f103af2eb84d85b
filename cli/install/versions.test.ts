/** Versions of images and tools that stand in several files are the same everywhere. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '../../src/version.ts'

const root = join(import.meta.dir, '../..')
const files = ['*', '.ci/run', '{cli,src,test}/**/*']
  .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root, dot: true })])
  .filter((name) => /(?:\.(?:ts|md|yaml|yml|json|sh)|Dockerfile|run)$/.test(name))
const texts = new Map(files.map((name) => [name, readFileSync(join(root, name), 'utf8')]))

/** Each file that matches, with what it says. */
const said = (pattern: RegExp): (readonly [file: string, said: string])[] =>
  [...texts].flatMap(([file, text]) => [...text.matchAll(pattern)].map(([, found = '']) => [file, found] as const))

test('every image of Gatehouse has the version of the product', () => {
  const tags = said(/\bgatehouse:(\d+\.\d+\.\d+)/g)
  expect(new Set(tags.map(([file]) => file)).size).toBeGreaterThan(2)
  expect(tags.filter(([, tag]) => tag !== version)).toEqual([])
  expect(JSON.parse(texts.get('package.json') ?? '{}').version).toBe(version)
  const chart = texts.get('cli/install/helm/chart/Chart.yaml') ?? ''
  expect([...chart.matchAll(/^(?:version|appVersion): "?([^"\n]*)"?$/gm)].map(([, found]) => found)).toEqual([
    version,
    version,
  ])
})

test('every image of sqld is the same, and so is every Bun', () => {
  const images = said(/libsql-server:(v[\w.]+)/g)
  expect([images.length > 2, new Set(images.map(([, tag]) => tag)).size]).toEqual([true, 1])
  const buns = said(/\bbun@(\d+\.\d+\.\d+)/g)
  expect([buns.length > 1, [...new Set(buns.map(([, tag]) => tag))]]).toEqual([true, [Bun.version]])
})
