import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { environmentName, flagName, secretSettings, settingNames, settingsSchema } from '../src/config.ts'
import { commands } from './main.ts'
import { recordingTerminal } from './testing/terminal.ts'

const readme = (await Bun.file(join(import.meta.dir, '../README.md')).text()).replace(/ +/g, ' ')
const defaults = settingsSchema.parse({})

test('the README lists every setting as it is', () => {
  const rows = settingNames.map((name) => {
    const flag = secretSettings.has(name) ? 'none' : `\`${flagName(name)}\``
    const standard = defaults[name] === undefined ? '' : `\`${defaults[name]}\` `
    return `| \`${environmentName(name)}\` | ${flag} | ${standard}| ${settingsSchema.shape[name].description} |`
  })
  expect(rows.filter((row) => !readme.includes(row))).toEqual([])
})

test('the README names every command', async () => {
  for (const [name, load] of Object.entries(commands(recordingTerminal()).commands)) {
    const node = await load()
    const paths = 'commands' in node ? Object.keys(node.commands).map((child) => `${name} ${child}`) : [name]
    for (const path of paths) expect(readme).toContain(`\`${path}`)
  }
})

test('every test file that the README names is there', async () => {
  const named = [...readme.matchAll(/`((?:cli|src|test)\/[\w/-]+\.(?:test\.)?ts)`/g)].map(([, path]) => path ?? '')
  expect(named.length).toBeGreaterThan(20)
  const present = await Promise.all(named.map((path) => Bun.file(join(import.meta.dir, '..', path)).exists()))
  expect(named.filter((_, index) => !present[index])).toEqual([])
})
