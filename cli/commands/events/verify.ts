/** `events verify`: whether any event was altered, removed or inserted; exit code 1 where one was. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { createApi } from '../../command/api.ts'
import { connectionFlags, findConnection } from '../../command/profile.ts'
import { linesOf } from '../../command/stream.ts'
import { printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const findingLine = z.object({
  kind: z.literal('finding'),
  what: z.string(),
  message: z.string(),
  chain: z.string().nullable(),
  from: z.number().nullable(),
  to: z.number().nullable(),
  event_id: z.string().nullable(),
  column: z.string().nullable(),
})
const progressLine = z.object({ kind: z.literal('progress'), done: z.number(), of: z.number() })
const chainLine = z.object({
  ...{ kind: z.literal('chain'), chain: z.string() },
  ...{ from: z.number(), to: z.number(), covered_to: z.number() },
})
const summaryLine = z.object({
  kind: z.literal('summary'),
  chains: z.number(),
  records: z.number(),
  events: z.number(),
  findings: z.number(),
  not_covered: z.number(),
  checkpoint: z.object({ number: z.number(), at: z.string(), key_id: z.string() }).nullable(),
  keys: z.array(z.string()),
  sums_growing: z.number().nullish(),
})
const line = z.discriminatedUnion('kind', [findingLine, progressLine, chainLine, summaryLine])
type Summary = z.infer<typeof summaryLine>

/** A checkpoint as a gateway keeps it, or as a line of the log has it among others. */
const witnessFile = z.object({ body: z.string(), key_id: z.string(), signature: z.string() })

export const verify = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Check whether an event was altered, removed or inserted' },
    args: {
      since: {
        type: 'string',
        description: 'From when: RFC 3339, or a number and m, h, d or w (default: all)',
        valueHint: '7d',
      },
      key: {
        type: 'string',
        description: 'Trust this key only, by its id (repeatable)',
        repeatable: true,
        valueHint: 'ID',
      },
      witness: {
        type: 'string',
        description: 'Compare with a checkpoint that was kept elsewhere (repeatable)',
        repeatable: true,
        valueHint: 'FILE',
      },
      json: { type: 'boolean', description: 'Print one JSON object a line' },
      ...connectionFlags,
    },
    async run({ args }) {
      const keys = args.key?.split('\n') ?? []
      const wrong = keys.find((key) => !/^[0-9a-f]{64}$/.test(key))
      if (wrong !== undefined) throw new Failure('usage', { message: '--key takes an id of 64 hexadecimal digits' })
      const witnesses = await Promise.all((args.witness?.split('\n') ?? []).map(readWitness))
      const api = createApi(findConnection(args, terminal), fetch)
      const body = { ...(args.since === undefined ? {} : { since: args.since }), keys, witnesses }
      const answer = await api.response({ method: 'POST', path: '/v1/events/verify', body })
      const { summary, altered } = await printReport(linesOf(answer), terminal, args.json === true)
      if (args.json !== true) await conclude(summary, keys.length > 0, terminal)
      if (summary.findings > 0) {
        throw new Failure('events_tampered', {
          message: `${altered ? 'The stored events were altered' : 'Events are as they were written, sums of them are not'}: ${summary.findings} findings`,
        })
      }
    },
  })

async function readWitness(path: string): Promise<z.infer<typeof witnessFile>> {
  const text = await Bun.file(path)
    .text()
    .catch(() => {
      throw new Failure('usage', { message: `${path} could not be read` })
    })
  try {
    return witnessFile.parse(JSON.parse(text))
  } catch {
    throw new Failure('usage', { message: `${path} holds no checkpoint` })
  }
}

interface Printed {
  summary: Summary
  /** Whether what was found is of the events themselves, not of sums only. */
  altered: boolean
  /** The chains that do not begin with their first record, with the number of the one that they begin with. */
  begun: readonly string[]
}

/**
 * Shows how far the verification is: on stderr in place of the line before, or, where findings go to the same terminal,
 * a line for each tenth.
 */
function progressOn(terminal: Terminal): (line: z.infer<typeof progressLine>) => void {
  let tenths = 0
  return ({ done, of }) => {
    const line = `${Math.floor((100 * done) / Math.max(1, of))} % of ${of} records read`
    terminal.progress?.(line)
    const reached = Math.floor((10 * done) / Math.max(1, of))
    if (terminal.interactive && reached > tenths) terminal.note(line)
    tenths = Math.max(tenths, reached)
  }
}

/** Prints what was found as it comes; gives the sum, without which the answer is not whole. */
export async function printReport(lines: AsyncIterable<string>, terminal: Terminal, json: boolean): Promise<Printed> {
  let summary: Summary | null = null
  let [altered, sums] = [false, false]
  const begun: string[] = []
  const show = progressOn(terminal)
  for await (const text of lines) {
    const parsed = line.safeParse(JSON.parse(text))
    if (!parsed.success) throw new Failure('internal', { message: 'The answer is of another version' })
    if (parsed.data.kind === 'summary') summary = parsed.data
    if (parsed.data.kind === 'finding') {
      sums ||= isOfSums(parsed.data.what)
      altered ||= !isOfSums(parsed.data.what)
    }
    if (parsed.data.kind === 'chain' && parsed.data.from > 0) {
      begun.push(`${printable(parsed.data.chain)} with ${parsed.data.from + 1}`)
    }
    if (json) await terminal.write(`${text}\n`)
    else if (parsed.data.kind === 'progress') show(parsed.data)
    else if (parsed.data.kind === 'finding') await terminal.write(`${describe(parsed.data)}\n`)
    else if (parsed.data.kind === 'chain' && parsed.data.to > parsed.data.covered_to) {
      const { chain, covered_to: covered, to } = parsed.data
      terminal.note(`Not covered yet: ${printable(chain)} ${covered + 1}–${to}`)
    }
  }
  if (!json) terminal.progress?.('')
  if (sums) terminal.note('The sums can be made anew of the events: gatehouse events rebuild-rollups')
  if (summary !== null) return { summary, altered, begun }
  throw new Failure('api_unreachable', { message: 'The answer broke off: what was printed is not all there is' })
}

const isOfLog = (what: string): boolean => /^(segment|log|archive)\./.test(what)

const isOfSums = (what: string): boolean => what.startsWith('rollup.')

/** The databases may have been altered, so a text can hold control characters for the terminal. */
function describe({ what, message, chain, from, to, event_id: id, column }: z.infer<typeof findingLine>): string {
  const where = [
    chain ?? (isOfSums(what) ? 'sums' : isOfLog(what) ? 'log' : 'checkpoints'),
    from === null ? null : from === to ? String(from) : `${from}–${to}`,
    column,
    id === null ? null : `event ${id}`,
  ]
  return printable(`${where.filter((part) => part !== null).join(' ')}: ${message} (${what})`)
}

const younger = 'altering them is found only where a gateway still has them'

/** `ofYounger`: what holds for records that no checkpoint covers. */
export async function conclude(
  summary: Summary,
  pinned: boolean,
  terminal: Terminal,
  ofYounger = younger,
): Promise<void> {
  const { chains, records, events, findings, checkpoint, not_covered: uncovered, keys, sums_growing: growing } = summary
  await terminal.write(`${events} events in ${records} records of ${chains} chains, ${findings} findings\n`)
  if (checkpoint === null) terminal.note('There is no checkpoint yet: only the chains themselves were followed')
  else
    terminal.note(
      `Signed up to checkpoint ${checkpoint.number} of ${checkpoint.at} with key ${printable(checkpoint.key_id)}`,
    )
  if (growing) terminal.note(`The sums of ${growing} hours and days were not compared: too much came in`)
  if (uncovered > 0) {
    terminal.note(`${uncovered} records are younger than that: ${ofYounger}`)
  }
  if (!pinned)
    for (const key of keys) terminal.note(`Compare with the id that you noted, or give it as --key: ${printable(key)}`)
}
