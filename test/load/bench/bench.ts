/**
 * `bun run bench`: what governing a request costs, against the least that a proxy on the same machine can do. One run
 * starts a provider, a bare proxy on Bun, nginx where it is installed, and two installations of the executable: `plain`
 * with one token and no policy, and one with everything on. It measures them in alternating rounds, so that a slow
 * minute of the machine falls on all alike, prints tables and writes bench.json. Compare the ratios, not the absolute
 * numbers.
 *
 * - `--quick` measures for seconds instead of minutes.
 * - `--syscalls` counts calls of the kernel, by perf and strace.
 * - `--profile` shows where the time goes, and writes flame graphs beside bench.json.
 * - `--peers` fetches and measures the gateways of Portkey and LiteLLM too.
 *
 * Everything on is: token authentication, bindings of team and models, ten policies of which one scans 400 terms in
 * requests and answers, a budget and a number of requests to reserve from, prompt hash, open record before dispatch,
 * attempt and outcome events shipped to the ledger.
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { repository } from '../../support/executable.ts'
import { saturate } from '../generator/saturation.ts'
import { objectsFor, startCounted } from '../profile/allocations.ts'
import { byFunction } from '../profile/attribution.ts'
import { flameGraph } from '../profile/flame-graph.ts'
import { measureSyscalls, missingTools } from '../profile/syscalls.ts'
import { measureWhere } from '../profile/where.ts'
import { requestsSeen } from '../rig/beside.ts'
import { answers, chatTarget } from '../rig/everything-on.ts'
import { watchMachine } from '../rig/machine.ts'
import { type Contender, type Field, startField } from './contenders.ts'
import { connections, measureAtRate, measureSaturation, spentFor } from './cost.ts'
import { measureFrames } from './frames.ts'
import { type Measured, type Memory, of, type Where } from './measured.ts'
import { startLiteLlm, startPortkey } from './peers.ts'
import { lookBefore, measureRecord } from './record.ts'
import { print, tables } from './report.ts'
import { measureStreams, residentMegabytes, type StreamPlan } from './streams.ts'
import { measureStarts, measureTokens } from './tokens.ts'

interface Plan {
  /** Compilers are done after so many requests. A slow contender is warmed up for so many seconds at the most. */
  warmRequests: number
  warmSeconds: number
  rounds: number
  seconds: number
  streams: StreamPlan
  /** How many the gateway has answered when its memory is looked at. */
  requests: number
  starts: number
  tokens: number
  revocations: number
}

const plans: Readonly<Record<'quick' | 'full', Plan>> = {
  quick: {
    ...{
      warmRequests: 30_000,
      warmSeconds: 8,
      rounds: 2,
      seconds: 2,
      requests: 30_000,
      starts: 2,
      tokens: 100_000,
      revocations: 10,
    },
    streams: { held: [512], seconds: 4, rounds: 1, overloadRounds: 0 },
  },
  full: {
    ...{
      warmRequests: 200_000,
      warmSeconds: 30,
      rounds: 5,
      seconds: 8,
      requests: 1_000_000,
      starts: 5,
      tokens: 1_000_000,
      revocations: 100,
    },
    streams: { held: [64, 512], seconds: 16, rounds: 3, overloadRounds: 10 },
  },
}

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    syscalls: { type: 'boolean', default: false },
    profile: { type: 'boolean', default: false },
    peers: { type: 'boolean', default: false },
  },
})
const plan = plans[flags.quick ? 'quick' : 'full']
const skipped: string[] = []

async function startPeers(upstream: string, stack: AsyncDisposableStack): Promise<Contender[]> {
  const peers: Contender[] = []
  for (const start of [startPortkey, startLiteLlm]) {
    const found = await start(upstream)
    if ('skipped' in found) skipped.push(found.skipped)
    else peers.push(stack.use(found).contender)
  }
  return peers
}

/** Objects of the gateway, of a request by the token of each. */
async function measureAllocations({ plain, everything, plainGatehouse, gatehouse }: Field) {
  const counts: Record<string, number> = {}
  for (const [{ name, target }, installation] of [
    [plain, plainGatehouse],
    [everything, gatehouse],
  ] as const) {
    await using counted = await startCounted(installation)
    const to = chatTarget(counted.url, target.token)
    await answers(to)
    counts[name] = await objectsFor(counted, to, 1)
  }
  return counts
}

async function warmUp({ target }: Contender): Promise<void> {
  let requests = 0
  for (let second = 0; second < plan.warmSeconds && requests < plan.warmRequests; second++) {
    requests += (await saturate(target, connections, 1)).requests
  }
}

/** Goes on until the gateway has answered as many as the plan says, and gives how many that were. */
async function sendUntil({ upstream, everything }: Field): Promise<number> {
  for (;;) {
    const seen = await requestsSeen(upstream, 'everything')
    if (seen >= plan.requests) return seen
    await spentFor(everything, () => saturate(everything.target, connections, plan.seconds))
  }
}

async function measureSyscallsOf(field: Field): Promise<Measured['syscalls']> {
  const missing = flags.syscalls ? missingTools() : 'they are counted with --syscalls'
  if (missing !== null) skipped.push(`calls of the kernel: ${missing}`)
  if (missing !== null) return null
  const found: Record<string, Awaited<ReturnType<typeof measureSyscalls>>> = {}
  for (const contender of field.all) found[contender.name] = await measureSyscalls(contender, plan.seconds)
  return found
}

/** Everything that needs the contenders. */
async function measureField(): Promise<Omit<Measured, 'starts' | 'tokens' | 'where' | 'skipped' | 'machine'>> {
  await using stack = new AsyncDisposableStack()
  const field = stack.use(await startField())
  skipped.push(...field.skipped)
  const peers = flags.peers ? await startPeers(field.upstream.url, stack) : []
  const before = await lookBefore(field)
  for (const contender of [...field.all, ...peers]) await warmUp(contender)
  const beforeMegabytes = residentMegabytes(field.everything)
  const saturated = await measureSaturation([...field.all, ...peers], plan.rounds, plan.seconds)
  const rate = Math.floor(of(saturated, field.everything.name).requests_per_second / 2)
  const atRate = await measureAtRate(field.all, rate, plan.rounds, plan.seconds)
  const frames = await measureFrames([field.bare, field.plain, field.inspected], plan.rounds, plan.seconds)
  const requests = await sendUntil(field)
  const afterRequests = residentMegabytes(field.everything)
  const held = await measureStreams([field.bare, field.everything], plan.streams)
  const memory: Memory = {
    before_megabytes: beforeMegabytes,
    requests,
    after_requests_megabytes: afterRequests,
    held_streams: Math.max(...plan.streams.held),
    after_streams_megabytes: residentMegabytes(field.everything),
  }
  const syscalls = await measureSyscallsOf(field)
  const record = await measureRecord(field, before, plan.revocations)
  const allocations = await measureAllocations(field)
  return { saturated, at_rate: atRate, frames, held, memory, syscalls, record, allocations }
}

/** Profiles, and writes a flame graph for each that was profiled. */
async function measureProfiles(): Promise<Where | null> {
  if (!flags.profile) {
    skipped.push('where the microseconds go: it is shown with --profile')
    return null
  }
  const { profiler, profiles } = await measureWhere({ warm: 2 * plan.warmSeconds, seconds: plan.seconds + 1 })
  const files: string[] = []
  for (const { name, samples, total } of profiles) {
    const file = `bench-flame-${name.replaceAll(' ', '-')}.svg`
    await Bun.write(join(repository, file), flameGraph(name, samples, total))
    files.push(file)
  }
  const last = profiles.at(-1)
  return {
    profiler,
    attributions: Object.fromEntries(profiles.map(({ name, attribution }) => [name, attribution])),
    functions: last ? byFunction(last.samples, last.total).slice(0, 20) : [],
    files,
  }
}

const machine = watchMachine()
const measured: Measured = {
  ...(await measureField()),
  starts: await measureStarts(plan.starts),
  tokens: await measureTokens([plan.tokens]),
  where: await measureProfiles(),
  skipped,
  machine: machine(),
}
for (const { title, rows } of tables(measured)) {
  console.log(`\n${title}`)
  print(rows)
}
console.log(skipped.map((reason) => `\nNot measured: ${reason}`).join(''))
const { processors, model, taken_by_others: others } = measured.machine
console.log(`${processors} × ${model}; others took ${Math.round(others * 100)} % of the machine meanwhile`)
if (others > 0.1)
  console.log('Others were busy: throughput, latency and starts say little, ratios of processor time more')
await Bun.write(join(repository, 'bench.json'), `${JSON.stringify({ flags, plan, ...measured }, null, 2)}\n`)
process.exit(0)
