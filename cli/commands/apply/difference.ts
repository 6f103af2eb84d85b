/** Steps as a person reads them: a line for each record, and what differs below it; in colour at a terminal. */
import { structuredPatch } from 'diff'
import { stringify } from 'yaml'
import { printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import type { Entry } from './places.ts'
import type { Step } from './plan.ts'

const signs = { create: '+', update: '~', delete: '-', unchanged: '=' } as const
/** ECMA-48, SGR: green, yellow, red, faint. */
const colours: Readonly<Record<string, number>> = { '+': 32, '~': 33, '-': 31, '=': 2 }

type Paint = (sign: string, text: string) => string

/** Colour where a person reads it, unless NO_COLOR says otherwise (no-color.org). */
export const paintFor = ({ interactive, environment }: Terminal): Paint => {
  const isColoured = interactive && (environment.NO_COLOR ?? '') === '' && environment.TERM !== 'dumb'
  return (sign, text) => {
    const colour = colours[sign]
    return isColoured && colour !== undefined ? `\u001b[${colour}m${text}\u001b[0m` : text
  }
}

/** `whole`: a new record is shown with its fields. */
export function textOf({ action, kind, name, changes, made }: Step, paint: Paint, showMade: boolean): string {
  const sign = signs[action]
  const head = paint(sign, `${sign} ${kind.one} ${printable(name)}`)
  const fields = made === null || !showMade ? [] : yamlLines(given(made)).map((line) => paint('+', `    + ${line}`))
  const changed = Object.entries(changes).flatMap(([field, { from, to }]) => differenceOf(field, from, to, paint))
  return [head, ...fields, ...changed].map((line) => `${line}\n`).join('')
}

const given = (entry: Entry): Entry => Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== null))

/** What fits in one line: a text, a number, a short list of them. */
const isPlain = (value: unknown): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (Array.isArray(value) && JSON.stringify(value).length < 60 && value.every((each) => typeof each !== 'object'))

function differenceOf(field: string, from: unknown, to: unknown, paint: Paint): string[] {
  if (isPlain(from) && isPlain(to)) {
    return [`    ${field}: ${paint('-', inLine(from))} -> ${paint('+', inLine(to))}`]
  }
  const { hunks } = structuredPatch('', '', fieldText(field, from), fieldText(field, to), '', '', { context: 2 })
  return hunks
    .flatMap(({ lines }) => lines)
    .filter((line) => !line.startsWith('\\'))
    .map((line) => `    ${paint(line.slice(0, 1), `${line.slice(0, 1)} ${printable(line.slice(1))}`)}`)
}

const fieldText = (field: string, value: unknown): string => (value === null ? '' : yamlOf({ [field]: value }))
const inLine = (value: unknown): string => printable(JSON.stringify(value ?? null))
const yamlOf = (value: unknown): string => stringify(value, { lineWidth: 0 })
const yamlLines = (value: Entry): string[] =>
  Object.keys(value).length === 0 ? [] : yamlOf(value).trimEnd().split('\n').map(printable)

/** `2 created, 1 changed, 3 unchanged`, or what would be. */
export function summaryOf(steps: readonly Step[], isDone: boolean): string {
  const words = isDone
    ? { create: 'created', update: 'changed', delete: 'deleted', unchanged: 'unchanged' }
    : { create: 'to create', update: 'to change', delete: 'to delete', unchanged: 'unchanged' }
  const parts = (['create', 'update', 'delete', 'unchanged'] as const).flatMap((action) => {
    const count = steps.filter((step) => step.action === action).length
    return count === 0 ? [] : [`${count} ${words[action]}`]
  })
  return parts.join(', ')
}
