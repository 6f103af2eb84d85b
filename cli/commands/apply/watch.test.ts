import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../../../test/support/eventually.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { readSources } from './files.ts'
import { watch } from './watch.ts'

const folder = mkdtempSync(join(tmpdir(), 'apply-watch-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** As Kubernetes mounts a ConfigMap: files are links into a folder, and the link to that folder is swapped. */
function mount(version: string, text: string): void {
  mkdirSync(join(folder, version))
  writeFileSync(join(folder, version, 'teams.yaml'), text)
  symlinkSync(version, join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
}

test('applies a mounted ConfigMap at once and after each change, and tries again what failed', async () => {
  mount('..1', 'teams: [{ name: a }]')
  symlinkSync('..data/teams.yaml', join(folder, 'teams.yaml'))
  const stop = new AbortController()
  const terminal = recordingTerminal()
  const applied: unknown[] = []
  let failing = 0
  const read = () => readSources(folder, () => Promise.reject(new Error('It reads no input')))
  const watching = watch({
    read,
    async apply() {
      const contents = (await read()).map(({ content }) => content)
      if (failing > 0) {
        failing -= 1
        throw new RangeError('not now')
      }
      applied.push(...contents)
    },
    terminal,
    stopped: stop.signal,
    everyMilliseconds: 5,
    retryMilliseconds: 20,
  })
  await until('the first is applied', () => applied.length === 1)
  failing = 2
  mount('..2', 'teams: [{ name: b }]')
  await until('the second is applied', () => applied.length === 2)
  mount('..3', 'teams: [')
  await until('what cannot be read is said', () => terminal.noted().includes('teams.yaml'))
  mount('..4', 'teams: []')
  await until('the fourth is applied', () => applied.length === 3)
  stop.abort()
  await watching
  expect(applied).toEqual([{ teams: [{ name: 'a' }] }, { teams: [{ name: 'b' }] }, { teams: [] }])
  expect(terminal.noted().match(/not now/g)?.length).toBeGreaterThanOrEqual(2)
})
