/**
 * Reads a foreign file and keeps account of it: whatever a format does not take is named afterwards, with its line. What
 * was taken goes to records as `apply` takes them.
 */

import { presets } from '../../../src/providers/presets/presets.ts'
import type { Path, Source } from '../apply/documents.ts'
import { entryMember } from '../apply/places.ts'

export type Fields = Record<string, unknown>

/** What is written: lists as a file of `apply` has them. */
export type Lists = Record<string, Fields[]>

export interface Note {
  readonly path: Path
  readonly message: string
}

export const noCounterpart = 'has no counterpart'

export class Conversion {
  readonly lists: Lists = {}
  readonly #source: Source
  readonly #taken = new Set<string>()
  readonly #notes: Note[] = []

  constructor(source: Source) {
    this.#source = source
  }

  /** A value, which counts as carried over with all within it; null where there is none. */
  take(...path: Path): unknown {
    this.#taken.add(keyOf(path))
    return this.look(...path)
  }

  takeText(...path: Path): string | null {
    const value = this.take(...path)
    return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : null
  }

  takeNumber(...path: Path): number | null {
    const value = Number(this.take(...path) ?? Number.NaN)
    return Number.isFinite(value) ? value : null
  }

  /** A value that is not yet carried over. */
  look(...path: Path): unknown {
    return path.reduce<unknown>(entryMember, this.#source.content) ?? null
  }

  /** The elements of a list, or the members of an object, by their paths. */
  each(...path: Path): Path[] {
    const value = this.look(...path)
    if (Array.isArray(value)) return value.map((_, index) => [...path, index])
    return typeof value === 'object' && value !== null ? Object.keys(value).map((name) => [...path, name]) : []
  }

  /** Says why something is not carried over, or what is to be done about it. */
  note(path: Path, message: string): void {
    this.#taken.add(keyOf(path))
    this.#notes.push({ path, message })
  }

  add(list: string, record: Fields): void {
    const given = Object.entries(record).filter(([, value]) => value !== null && value !== undefined)
    this.lists[list] = [...(this.lists[list] ?? []), Object.fromEntries(given)]
  }

  /** Everything that was not carried over, in the order of the file. */
  notes(): string[] {
    const rest: Note[] = []
    this.#walk([], this.#source.content, rest)
    return [...this.#notes, ...rest]
      .map(({ path, message }) => ({ at: this.#source.position(path, true), path, message }))
      .toSorted((one, other) => lineOf(one.at) - lineOf(other.at))
      .map(({ at, path, message }) => `${this.#source.name}${at === null ? '' : `:${at}`}: ${shown(path)}: ${message}`)
  }

  #walk(path: Path, value: unknown, rest: Note[]): void {
    if (this.#taken.has(keyOf(path))) return
    const inner = this.each(...path)
    if (inner.length === 0) {
      if (path.length > 0) rest.push({ path, message: noCounterpart })
      return
    }
    for (const each of inner) this.#walk(each, entryMember(value, each.at(-1) ?? ''), rest)
  }
}

const keyOf = (path: Path): string => JSON.stringify(path)
const lineOf = (at: string | null): number => Number(at?.split(':')[0] ?? 0)
const shown = (path: Path): string =>
  path.map((name, index) => (typeof name === 'number' ? `[${name}]` : index === 0 ? name : `.${name}`)).join('')

/** A name as records take it. */
export const recordName = (text: string): string =>
  text
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 64) || 'unnamed'

export const variableName = (text: string): string => text.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')

/** The preset of a service that other gateways may call differently; null where there is none. */
export function presetOf(name: string): string | null {
  const called = otherNames[name] ?? name
  return presets.some((preset) => preset.name === called) ? called : null
}

const otherNames: Readonly<Record<string, string>> = {
  'azure-openai': 'azure',
  azure_ai: 'azure',
  google: 'gemini',
  vertex_ai: 'vertex',
  'vertex-ai': 'vertex',
  together_ai: 'together',
  'together-ai': 'together',
  fireworks_ai: 'fireworks',
  'fireworks-ai': 'fireworks',
  'mistral-ai': 'mistral',
  'x-ai': 'xai',
  'perplexity-ai': 'perplexity',
  cohere_chat: 'cohere',
  nvidia_nim: 'nvidia',
  'workers-ai': 'cloudflare',
  ollama_chat: 'ollama',
  hosted_vllm: 'vllm',
  lm_studio: 'lmstudio',
  llamafile: 'llamacpp',
  parasail: '',
}

/** The window of a budget that begins anew after this time, such as `1d`, `30d`, `1mo` or `1M`; null for another. */
export const windowOf = (duration: string | null): string | null =>
  ({ '1d': 'day', '24h': 'day', '7d': 'week', '1w': 'week', '30d': 'month', '1mo': 'month', '1M': 'month' })[
    duration ?? ''
  ] ?? null
