/**
 * A lenient translation leaves out what the answer hardly depends on, and notes it; a strict one refuses it. Functions
 * that read and write requests take the `Lenience` of the translation: without one they are strict. The record of a model
 * decides (`translation`).
 */

import {
  type Effort,
  efforts,
  type FieldPath,
  type NeutralOutput,
  type NeutralRequest,
  type NeutralText,
  type Stated,
} from '../neutral.ts'
import type { JsonObject } from '../reading/json-value.ts'
import { unsupported } from './translation-errors.ts'

/** The notes are bounded, because the caller chooses the types of tools. */
const mostNotes = 20

/** Collects notes of what one translation left out or replaced: the event of the exchange records them. */
export class Lenience {
  readonly #notes = new Set<string>()

  get notes(): readonly string[] {
    return [...this.#notes]
  }

  /** The place of an element in its list does not matter: many equal elements make one note. */
  note(change: 'left_out' | 'replaced', at: FieldPath): void {
    if (this.#notes.size < mostNotes) this.#notes.add(`translation.${change}:${at.replaceAll(/\.\d+/g, '')}`)
  }
}

/** Notes that this value is left out. Throws `translation_unsupported` if the translation is strict. */
export function leaveOut(lenience: Lenience | undefined, at: FieldPath, message: string): void {
  if (lenience === undefined) throw unsupported(at, message)
  lenience.note('left_out', at)
}

const plainType = /^\w{1,40}$/

/** Leaves out a tool that only its own provider runs; the note names the tool's type. */
export function leaveOutTool(lenience: Lenience | undefined, tool: JsonObject, at: FieldPath, message: string): void {
  if (lenience === undefined) throw unsupported(`${at}.type`, message)
  const { type } = tool
  lenience.note('left_out', typeof type === 'string' && plainType.test(type) ? `${at}.${type}` : at)
}

const jsonInstruction = 'Answer with a single valid JSON object, without any text or code fence around it.'

/** Notes that JSON without a schema becomes an instruction. Throws if the translation is strict. */
export function instructJson(lenience: Lenience | undefined, { at }: Stated<NeutralOutput>, message: string): void {
  if (lenience === undefined) throw unsupported(at, message)
  lenience.note('replaced', at)
}

/** The instructions, for a provider that has JSON by a schema only. */
export const withJsonInstruction = (
  instructions: readonly NeutralText[],
  output: Stated<NeutralOutput> | null,
): readonly NeutralText[] =>
  output?.value.form === 'json'
    ? [...instructions, { kind: 'text', text: jsonInstruction, at: output.at }]
    : instructions

/** The nearest of the efforts that a model has, in rising order. Throws if the translation is strict. */
export function nearestEffort<Known extends Effort>(
  lenience: Lenience | undefined,
  effort: Effort,
  known: readonly [Known, ...Known[]],
  at: FieldPath,
  message: string,
): Known {
  const same = known.find((each) => each === effort)
  if (same !== undefined) return same
  if (lenience === undefined) throw unsupported(at, message)
  lenience.note('replaced', at)
  const wanted = efforts.indexOf(effort)
  return known.findLast((each) => efforts.indexOf(each) < wanted) ?? known[0]
}

/**
 * The request with instructions inside its conversation moved before it, for a provider that takes them only there.
 * Unchanged if the translation is strict: the writer refuses them.
 */
export function withInstructionsFirst(lenience: Lenience | undefined, request: NeutralRequest): NeutralRequest {
  const later = request.turns.filter(({ role, name }) => role === 'system' && name === undefined)
  if (lenience === undefined || later.length === 0) return request
  for (const { at } of later) lenience.note('replaced', `${at}.role`)
  const texts = later.flatMap(({ parts }) => parts.filter((part) => part.kind === 'text'))
  return {
    ...request,
    instructions: [...request.instructions, ...texts],
    turns: request.turns.filter((turn) => !later.includes(turn)),
  }
}
