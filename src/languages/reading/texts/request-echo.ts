/**
 * The caller's own words: an answer that repeats them reveals nothing new. The responses language repeats much of a
 * request.
 */
import { isObject } from '../json-value.ts'
import { isArgumentsObject } from './texts.ts'

export class RequestEcho {
  readonly #body: unknown
  #texts: Set<string> | null = null

  /** `body` is the parsed request, as sent; it is read when the first text is asked for. */
  constructor(body: unknown) {
    this.#body = body
  }

  /** Whether the request has this text, at any place. */
  has(text: string): boolean {
    if (this.#texts === null) {
      this.#texts = new Set()
      addTexts(this.#body, this.#texts, 0)
    }
    return this.#texts.has(text)
  }
}

/** The same depth to which texts are found in answers. */
const deepest = 64

function addTexts(value: unknown, texts: Set<string>, depth: number): void {
  if (typeof value === 'string') texts.add(value)
  if (typeof value !== 'object' || value === null || depth > deepest) return
  if (Array.isArray(value)) for (const element of value) addTexts(element, texts, depth + 1)
  else if (isObject(value)) {
    for (const key in value) {
      const inner = value[key]
      if (isArgumentsObject(key, inner, value)) texts.add(JSON.stringify(inner))
      addTexts(inner, texts, depth + 1)
    }
  }
}
