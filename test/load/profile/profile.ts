/**
 * Where the processor time of a governed request goes: `bun test/load/profile/profile.ts [seconds to warm up]`. A gateway from
 * its sources, with everything of the bench on, is kept busy by 16 connections; then (1) how much each of its threads
 * took, as Linux counts it, beside what a bare pass-through takes, and (2) how its main thread's part is shared among
 * folders and functions, as Bun's profiler sees them. The profiler itself takes a fifth more, which is in all figures.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repository } from '../../support/executable.ts'
import { startGatehouse } from '../../support/harness.ts'
import { mainThreadSeconds, processorSeconds, threadSeconds } from '../../support/processes.ts'
import { saturate } from '../generator/saturation.ts'
import { requestsSeen, startBeside } from '../rig/beside.ts'
import { answers, chatTarget, makeChain, makeLimitedToken, priceModel } from '../rig/everything-on.ts'
import { startFromSources } from '../rig/source-gateway.ts'
import { type Owned, ownersOf } from './cpu-profile.ts'

const warmSeconds = Number(process.argv[2] ?? 15)
const seconds = 6
const connections = 16

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-profile-'))
using _directory = { [Symbol.dispose]: () => rmSync(directory, { recursive: true }) }
using upstream = await startBeside('mock-upstream.ts')
using passThrough = await startBeside('pass-through.ts', upstream.url)
await using gatehouse = await startGatehouse({ upstream: { baseUrl: `${upstream.url}/governed/v1` } })
await priceModel(gatehouse)
await makeChain(gatehouse)
const token = await makeLimitedToken(gatehouse)
const profiler = ['--cpu-prof', '--cpu-prof-interval=500', `--cpu-prof-dir=${directory}`]
await using profiled = await startFromSources(gatehouse, profiler, {})
const { url, child } = profiled

const direct = { name: 'direct', url: `${passThrough.url}/direct/v1/chat/completions`, token: 'none' }
await saturate(direct, connections, 2)
const [bareSeconds, bareRequests] = [processorSeconds(passThrough.pid), await requestsSeen(upstream, 'direct')]
await saturate(direct, connections, seconds)
const bare =
  ((processorSeconds(passThrough.pid) - bareSeconds) * 1e6) / ((await requestsSeen(upstream, 'direct')) - bareRequests)

const target = chatTarget(url, token)
await answers(target)
await saturate(target, connections, warmSeconds)
const before = await look()
await saturate(target, connections, seconds)
const after = await look()
child.kill('SIGTERM')
await child.exited
const [file = ''] = readdirSync(directory)
const owners = ownersOf(await Bun.file(join(directory, file)).text(), join(repository, 'src/'), before.at, after.at)

const requests = after.requests - before.requests
const took = [...after.threads]
  .map(([name, time]) => ({ name, micros: ((time - (before.threads.get(name) ?? 0)) * 1e6) / requests }))
  .sort((one, other) => other.micros - one.micros)
const line = (micros: number, what: string) => console.log(`${micros.toFixed(1).padStart(8)}  ${what}`)

console.log(`µs of processor time a request, ${requests} requests`)
line(bare, 'a bare pass-through in all')
line(
  took.reduce((sum, { micros }) => sum + micros, 0),
  'the gateway in all, of which',
)
for (const { name, micros } of took) if (micros >= 0.1) line(micros, `  thread ${name}`)

const main = ((after.main - before.main) * 1e6) / requests
const byFolder = Map.groupBy(owners, ({ file: path }) => path.split('/')[0] ?? '')
const sum = (some: readonly Owned[]) => some.reduce((all, { share }) => all + share, 0)
console.log('\nthe main thread by folder, with the native code that each calls')
for (const [folder, some] of [...byFolder].sort(([, one], [, other]) => sum(other) - sum(one))) {
  line(sum(some) * main, folder)
}
console.log('\nby function')
for (const { file: path, name, share } of owners.slice(0, 40)) line(share * main, `${name}  ${path}`)

/** What the gateway's threads took so far, and of how many requests. */
async function look() {
  const [threads, main] = [threadSeconds(child.pid), mainThreadSeconds(child.pid)]
  return { threads, main, requests: await requestsSeen(upstream, 'governed'), at: Date.now() }
}
