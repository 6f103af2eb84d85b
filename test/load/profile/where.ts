/**
 * Profiles what carries requests while it is kept busy: the bare proxy, and gateways run from their sources, since an
 * executable has no names for half of its functions. By perf where it is installed and permitted: every thread, and the
 * kernel. Otherwise by Bun's own profiler, which sees the main thread alone and makes it slower by a fifth; then the
 * kernel's part is the one that the kernel counted for the whole thread.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repository } from '../../support/executable.ts'
import { type Contender, type Field, startField } from '../bench/contenders.ts'
import { connections } from '../bench/cost.ts'
import { saturate } from '../generator/saturation.ts'
import { startWith } from '../rig/beside.ts'
import { answers } from '../rig/everything-on.ts'
import { startFromSources } from '../rig/source-gateway.ts'
import type { Target } from '../rig/target.ts'
import { lookAtThreads, type Spent, spentSince } from '../rig/threads.ts'
import { type Attribution, attribute, attributeMainThread } from './attribution.ts'
import { samplesOf } from './cpu-profile.ts'
import { machineCodeNames, mostCalled, namedSamples, type RawSample, readScript } from './perf.ts'
import type { Sample } from './samples.ts'

export interface Profile {
  name: string
  /** Microseconds of processor time a request, while it was profiled. */
  total: number
  attribution: Attribution
  samples: readonly Sample[]
}

export interface Profiles {
  profiler: 'perf' | 'bun --cpu-prof'
  profiles: readonly Profile[]
}

interface Seconds {
  warm: number
  seconds: number
}

const looksPerSecond = 1999

type Profiler = Profiles['profiler']

export async function measureWhere(times: Seconds): Promise<Profiles> {
  const profiler = (await perfMayRecord()) ? 'perf' : 'bun --cpu-prof'
  await using field = await startField()
  const profiles: Profile[] = []
  let fetchAddress: bigint | null = null
  for (const contender of [field.bare, field.plain, field.everything]) {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-profile-'))
    try {
      const run = await runProfiled(profiler, field, contender, folder, times)
      if (contender === field.bare) fetchAddress = mostCalled(run.raw)
      profiles.push(profileOf(contender.name, run, folder, fetchAddress))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  return { profiler, profiles }
}

/** Whether perf is installed, and permitted to see the kernel too. */
async function perfMayRecord(): Promise<boolean> {
  if (Bun.which('perf') === null) return false
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-profile-'))
  try {
    const args = ['record', '-q', '-e', 'cpu-clock:k', '-o', join(folder, 'perf.data'), '--', 'true']
    return (await Bun.spawn(['perf', ...args], { stdout: 'ignore', stderr: 'ignore' }).exited) === 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Run {
  profiler: Profiler
  pid: number
  /** Microseconds a request. */
  spent: Spent
  /** Milliseconds since the epoch. */
  from: number
  until: number
  /** What perf saw. */
  raw: readonly RawSample[]
}

/** Runs another process like the contender's under the profiler, until it has ended and the profile is written. */
async function runProfiled(
  profiler: Profiler,
  field: Field,
  contender: Contender,
  folder: string,
  { warm, seconds }: Seconds,
): Promise<Run> {
  const { url, pid, end } = await startProfiled(profiler, field, contender, folder)
  const target = { ...contender.target, url: contender.target.url.replace(/^http:\/\/[^/]*/, url) }
  await answers(target)
  await saturate(target, connections, warm)
  const from = Date.now()
  const file = join(folder, 'perf.data')
  const recording = profiler === 'perf' ? record(pid, seconds, file) : Promise.resolve()
  const spent = await busy(target, pid, seconds)
  const until = Date.now()
  await recording
  await end()
  return { profiler, pid, spent, from, until, raw: profiler === 'perf' ? await script(file) : [] }
}

function profileOf(name: string, run: Run, folder: string, fetchAddress: bigint | null): Profile {
  const { total } = run.spent
  if (run.profiler === 'perf') {
    const samples = namedSamples(run.raw, machineCodeNames(folder, run.pid), fetchAddress)
    return { name, total, samples, attribution: attribute(samples, total) }
  }
  const file = readdirSync(folder).find((found) => found.endsWith('.cpuprofile')) ?? ''
  const text = readFileSync(join(folder, file), 'utf8')
  const samples = samplesOf(text, `${repository}/`, run.from, run.until)
  return { name, total, samples, attribution: attributeMainThread(samples, run.spent) }
}

interface Started {
  url: string
  pid: number
  end(): Promise<void>
}

async function startProfiled(
  profiler: Profiler,
  field: Field,
  { name, record: governed }: Contender,
  folder: string,
): Promise<Started> {
  const isPerf = profiler === 'perf'
  const flags = isPerf ? [] : ['--cpu-prof', '--cpu-prof-interval=500', `--cpu-prof-dir=${folder}`]
  const env: Record<string, string> = isPerf ? { BUN_JSC_useJITDump: '1', BUN_JSC_jitDumpDirectory: folder } : {}
  if (governed === undefined) {
    const { url, pid, ended } = await startWith({ env, flags }, 'pass-through.ts', field.upstream.url)
    return { url, pid, end: ended }
  }
  const gatehouse = name === field.plain.name ? field.plainGatehouse : field.gatehouse
  const { url, child } = await startFromSources(gatehouse, flags, env)
  const end = async () => {
    child.kill('SIGTERM')
    await child.exited
  }
  return { url, pid: child.pid, end }
}

/** Keeps it busy, and gives what each request took. */
async function busy(target: Target, pid: number, seconds: number): Promise<Spent> {
  const before = lookAtThreads([pid])
  const { requests } = await saturate(target, connections, seconds)
  const { byThread, ...spent } = spentSince(before, [pid])
  const each = Object.entries(byThread).map(([name, { total, kernel }]) => {
    return [name, { total: total / requests, kernel: kernel / requests }] as const
  })
  return { ...spent, total: spent.total / requests, byThread: Object.fromEntries(each) }
}

async function record(pid: number, seconds: number, file: string): Promise<void> {
  const args = ['-q', '-e', 'cpu-clock', '-F', String(looksPerSecond), '-g', '-p', String(pid), '-o', file]
  const child = Bun.spawn(['perf', 'record', ...args, '--', 'sleep', String(seconds)], {
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const said = await new Response(child.stderr).text()
  await child.exited
  if (!existsSync(file)) throw new Error(`perf record has recorded nothing: ${said}`)
}

const script = async (file: string): Promise<RawSample[]> =>
  readScript(await Bun.$`perf script -i ${file} -F comm,pid,tid,ip,sym,dso`.quiet().text())
