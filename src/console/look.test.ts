import { expect, test } from 'bun:test'
import { join } from 'node:path'

const browser = join(import.meta.dir, 'browser')

async function textsOf(pattern: string): Promise<string> {
  const paths = [...new Bun.Glob(pattern).scanSync({ cwd: browser })].filter((path) => !path.includes('.test.'))
  return (await Promise.all(paths.map((path) => Bun.file(join(browser, path)).text()))).join('\n')
}

const withoutComments = (css: string): string => css.replaceAll(/\/\*[\s\S]*?\*\//g, '')

test('every class that is given a look is one that a screen uses', async () => {
  const css = withoutComments(await textsOf('**/*.css'))
  const written = await textsOf('**/*.{ts,tsx}')
  const quoted = [...written.matchAll(/["'`]([^"'`\n]*)["'`]/g)].map(([, text = '']) => text).join(' ')
  const words = new Set(quoted.match(/[a-z][a-z0-9-]*/g))
  const named = new Set([...css.matchAll(/\.([a-z][a-z0-9-]*)(?=[^{}]*\{)/g)].map(([, name = '']) => name))
  expect(named.size).toBeGreaterThan(50)
  // Those of the chart library begin with u-.
  expect([...named].filter((name) => !words.has(name) && !name.startsWith('u-'))).toEqual([])
})

test('every stylesheet is part of the look', async () => {
  const entry = await Bun.file(join(browser, 'look.css')).text()
  const imported = [...entry.matchAll(/@import "\.\/([^"]+)"/g)].map(([, path = '']) => path)
  const present = [...new Bun.Glob('**/*.css').scanSync({ cwd: browser })].filter((path) => path !== 'look.css')
  expect(imported.toSorted()).toEqual(present.toSorted())
})
