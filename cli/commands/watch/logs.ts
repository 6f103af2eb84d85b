/**
 * `logs`: the log of the servers, which is lines of JSON, as a person reads it. It comes from a file, from standard
 * input, or on a host with systemd from the journal of the unit.
 */
import { statSync } from 'node:fs'
import { defineCommand } from 'citty'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { linesOf } from '../../command/stream.ts'
import { coloured } from '../../terminal/colour.ts'
import { type Input, processInput } from '../../terminal/input.ts'
import { printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const levels = ['debug', 'info', 'warn', 'error']

export const logs = (terminal: Terminal, input: Pick<Input, 'interactive'> = processInput) =>
  defineCommand({
    meta: { description: "Show the servers' log for people: from a file, standard input or the journal of systemd" },
    args: {
      file: { type: 'positional', required: false, description: 'The log; absent: standard input, or the journal' },
      level: { type: 'enum', options: levels, description: 'Only lines of this level or above (default debug)' },
      process: { type: 'string', description: 'Only lines of this process, such as gateway', valueHint: 'NAME' },
      unit: { type: 'string', description: 'The unit in the journal (default gatehouse)', valueHint: 'NAME' },
      lines: { type: 'string', description: 'Of the journal: how many lines (default 100)', valueHint: 'N' },
      follow: { type: 'boolean', description: 'Of the journal: also what comes' },
      json: { type: 'boolean', description: 'Print the lines as they are' },
    },
    async run({ args }) {
      const source = sourceOf(args, input.interactive)
      const least = levels.indexOf(args.level ?? 'debug')
      for await (const text of linesOf(new Response(source))) {
        const line = readLine(text)
        if (line === null) {
          // Not the log: what a start says, or a stack. It has no level to choose it by.
          if (args.level === undefined && args.process === undefined && !args.json) await terminal.write(`${text}\n`)
          continue
        }
        if (levels.indexOf(line.level) < least) continue
        if (args.process !== undefined && line.process !== args.process) continue
        await terminal.write(args.json ? `${text}\n` : `${shown(line, terminal)}\n`)
      }
    },
  })

interface Source {
  file: string | undefined
  unit: string | undefined
  lines: string | undefined
  follow: boolean | undefined
}

/** Throws `usage` where there is nothing to read. */
function sourceOf({ file, unit, lines = '100', follow }: Source, isTyped: boolean): ReadableStream<Uint8Array> {
  if (file !== undefined) {
    const found = statSync(file, { throwIfNoEntry: false })
    if (found === undefined) throw new Failure('usage', { message: `There is no file ${file}` })
    if (!found.isFile()) throw new Failure('usage', { message: `${file} is no file: pipe the log in instead` })
    return Bun.file(file).stream()
  }
  if (!isTyped && unit === undefined) return Bun.stdin.stream()
  if (!/^[1-9]\d{0,6}$/.test(lines)) throw new Failure('usage', { message: '--lines takes a whole number from 1' })
  const journal = Bun.which('journalctl')
  if (journal === null) {
    throw new Failure('usage', {
      message:
        'This host has no journal: name a file, or pipe the log in (docker logs CONTAINER 2>&1 | gatehouse logs)',
    })
  }
  const words = ['--unit', unit ?? 'gatehouse', '--output', 'cat', '--lines', lines, ...(follow ? ['--follow'] : [])]
  return Bun.spawn([journal, ...words], { stdout: 'pipe', stderr: 'inherit', stdin: 'ignore' }).stdout
}

const lineSchema = z.looseObject({
  level: z.string(),
  time: z.string(),
  process: z.string().optional(),
  msg: z.string(),
})
type Line = z.infer<typeof lineSchema>

function readLine(text: string): Line | null {
  try {
    return lineSchema.safeParse(JSON.parse(text)).data ?? null
  } catch {
    return null
  }
}

function shown({ level, time, process, msg, ...fields }: Line, terminal: Terminal): string {
  const said = Object.entries(fields).map(([name, value]) => `${name}=${textOf(value)}`)
  const place = process === undefined ? '' : `${process}: `
  const rest = said.length === 0 ? '' : `  ${said.join(' ')}`
  return `${printable(time)} ${coloured(printable(level).padEnd(5), terminal)} ${printable(`${place}${msg}${rest}`)}`
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
