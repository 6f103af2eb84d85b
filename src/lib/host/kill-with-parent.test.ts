/** A child and what it started end with the process that owns them, though it is killed and they do not listen. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../../test/support/eventually.ts'

const stubborn = 'trap "" TERM HUP INT; sleep 600 & echo $! >&2; while true; do sleep 1; done'
const owner = `
  import { spawn } from 'node:child_process'
  import { killWithParent } from ${JSON.stringify(join(import.meta.dir, 'kill-with-parent.ts'))}
  const [kept, freed] = [0, 1].map(() =>
    spawn('/bin/sh', ['-c', ${JSON.stringify(stubborn)}], { detached: true, stdio: ['pipe', 'ignore', 'pipe'] }))
  const [grandchild] = await Promise.all([kept, freed].map((child) => new Promise((told) => child.stderr.once('data', told))))
  killWithParent(kept.pid)
  killWithParent(freed.pid)()
  await new Promise((passed) => setTimeout(passed, 100))
  console.log([kept.pid, Number(grandchild), freed.pid].join(' '))
  setInterval(() => {}, 1000)`

/** Whether it runs; what nobody has waited for yet does not. */
function runs(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

test('ends the process group of a killed owner, and ends no process when a group is released', async () => {
  const process_ = Bun.spawn([process.execPath, '-e', owner], { stdout: 'pipe', stderr: 'inherit' })
  const { value } = await process_.stdout.getReader().read()
  const [child = 0, grandchild = 0, freed = 0] = new TextDecoder().decode(value).trim().split(' ').map(Number)
  try {
    expect([child, grandchild, freed].map(runs)).toEqual([true, true, true])
    process_.kill('SIGKILL')
    await until('the group has ended', () => !runs(child) && !runs(grandchild))
  } finally {
    // Where it has ended already there is nothing to end.
    if (runs(freed)) process.kill(-freed, 'SIGKILL')
  }
})
