/**
 * Calls of the kernel for each request: how many, by perf, which does not slow down what it counts, and which ones, by
 * strace, which does. Where perf is missing the number is strace's too.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Contender } from '../bench/contenders.ts'
import { connections } from '../bench/cost.ts'
import { saturate } from '../generator/saturation.ts'

export interface Syscalls {
  /** A request, by the tool that counted them; null where it is missing or was not permitted. */
  by_perf: number | null
  by_strace: number | null
  /** The most frequent ones, a request, by strace. */
  names: Readonly<Record<string, number>>
}

/** Why nothing can be counted here, or null. */
export const missingTools = (): string | null =>
  Bun.which('perf') === null && Bun.which('strace') === null ? 'neither perf nor strace is installed' : null

export async function measureSyscalls(contender: Contender, seconds: number): Promise<Syscalls> {
  const byPerf = Bun.which('perf') === null ? null : await countWithPerf(contender, seconds)
  const names = Bun.which('strace') === null ? null : await countWithStrace(contender, seconds)
  const sum = names && Object.values(names).reduce((all, count) => all + count, 0)
  return { by_perf: byPerf, by_strace: sum, names: names ?? {} }
}

/** From before the load until after it: idle, these processes call next to nothing. */
async function countWithPerf({ pids, target }: Contender, seconds: number): Promise<number | null> {
  const child = Bun.spawn(['perf', 'stat', '-x', ',', '-e', 'raw_syscalls:sys_enter', '-p', pids.join(',')], {
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const { requests } = await during(child, () => saturate(target, connections, seconds))
  return perfCount(await new Response(child.stderr).text(), requests)
}

/** Its first column is the number, or says why there is none. */
export function perfCount(text: string, requests: number): number | null {
  const line = text.split('\n').find((found) => found.includes('raw_syscalls:sys_enter')) ?? ''
  const count = Number.parseInt(line, 10)
  return Number.isNaN(count) ? null : count / requests
}

async function countWithStrace({ pids, target }: Contender, seconds: number): Promise<Record<string, number> | null> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-strace-'))
  const file = join(folder, 'counts')
  try {
    const attached = pids.flatMap((pid) => ['-p', String(pid)])
    const child = Bun.spawn(['strace', '-c', '-f', ...attached, '-o', file], { stdout: 'ignore', stderr: 'ignore' })
    const { requests } = await during(child, () => saturate(target, connections, seconds))
    return existsSync(file) ? straceCounts(readFileSync(file, 'utf8'), requests) : null
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The time that a tool needs until it has attached to all threads. */
const attachMs = 500

async function during<Result>(tool: Bun.Subprocess, load: () => Promise<Result>): Promise<Result> {
  await Bun.sleep(attachMs)
  const result = await load()
  tool.kill('SIGINT')
  await tool.exited
  return result
}

const row = /^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$/

/** Reads the table of `strace -c`, calls for each request; null where it counted nothing. */
export function straceCounts(text: string, requests: number): Record<string, number> | null {
  const found = text.split('\n').flatMap((line): [string, number][] => {
    const [, calls, name = ''] = row.exec(line) ?? []
    return calls === undefined || name === 'total' ? [] : [[name, Number(calls) / requests]]
  })
  return found.length === 0 ? null : Object.fromEntries(found)
}
