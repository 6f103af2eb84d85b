/**
 * Searches of conditions in long texts. A condition is evaluated synchronously, and a pattern needs tens of
 * milliseconds for a megabyte. So a search of a long text ends the evaluation, runs in steps, and the condition is
 * evaluated again with its result. Expressions are pure, so the outcome is the same.
 */
import type { TextMatcher } from '../../inspection/detectors/text-matcher.ts'
import { type YieldingTask, YieldTimer } from '../stages/yield-timer.ts'
import type { PolicyContext } from './context.ts'

/** UTF-16 units that a pattern searches in one step. */
const longUnits = 4 * 1024
/** UTF-16 units that are screened in one step, which takes some 5 µs for a thousand. */
const screenedUnits = 64 * 1024
const pieceUnits = 256

interface Search {
  readonly text: string
  readonly pattern: TextMatcher
  found: boolean | null
}

/** Thrown by a condition that needs an unfinished search. */
class UnfinishedSearch extends Error {
  constructor() {
    super('The condition searches a long text')
  }
}

/** By what is common to all contexts of one exchange. */
const searches = new WeakMap<PolicyContext['request'], Search[]>()
/** Those of the context that is evaluated; most have none, and none is made for them. */
let current: Search[] | null = null

/** Evaluates with the searches of the context. */
export function withSearches(context: PolicyContext, evaluate: (context: PolicyContext) => boolean): boolean {
  const before = current
  current = searches.get(context.request) ?? null
  try {
    return evaluate(context)
  } finally {
    if (current !== null) searches.set(context.request, current)
    current = before
  }
}

/** Whether the pattern is found. Throws `UnfinishedSearch` if the text is long and the result is not known yet. */
export function isFound(text: string, pattern: TextMatcher): boolean {
  if (text.length <= screenedUnits && !pattern.mayMatch(text)) return false
  if (text.length > longUnits) return isFoundInLong(text, pattern)
  const search = searchInPieces(text, pattern)
  let step = search.next()
  while (step.done !== true) step = search.next()
  return step.value
}

/** Reads a piece at a time, and not beyond the first match. */
function* searchInPieces(text: string, pattern: TextMatcher): Generator<void, boolean> {
  const follower = pattern.follow()
  for (let at = 0; at < text.length; at += pieceUnits) {
    yield
    if (follower.push(text.slice(at, at + pieceUnits), false).matches.length > 0) return true
  }
  return follower.push('', true).matches.length > 0
}

function isFoundInLong(text: string, pattern: TextMatcher): boolean {
  current ??= []
  const known = current.find((search) => search.pattern === pattern && search.text === text)
  if (known === undefined) current.push({ text, pattern, found: null })
  if (known === undefined || known.found === null) throw new UnfinishedSearch()
  return known.found
}

/** Whether a condition holds; a promise if it searches a long text. Throws if it fails, or the search was cancelled. */
export function holds(
  condition: (context: PolicyContext) => boolean,
  context: PolicyContext,
  taker: YieldingTask,
): boolean | Promise<boolean> {
  try {
    return condition(context)
  } catch (error) {
    if (!isSearching(context)) throw error
    return holdsLater(condition, context, taker)
  }
}

const isSearching = ({ request }: PolicyContext): boolean =>
  searches.get(request)?.some(({ found }) => found === null) ?? false

async function holdsLater(
  condition: (context: PolicyContext) => boolean,
  context: PolicyContext,
  taker: YieldingTask,
): Promise<boolean> {
  for (;;) {
    for (const search of searches.get(context.request) ?? []) {
      if (search.found === null) search.found = await searchInTurns(search, taker)
    }
    try {
      return condition(context)
    } catch (error) {
      if (!isSearching(context)) throw error
    }
  }
}

async function searchInTurns({ text, pattern }: Search, taker: YieldingTask): Promise<boolean> {
  const timer = new YieldTimer(taker)
  const search = searchInPieces(text, pattern)
  let step = search.next()
  while (step.done !== true) {
    if (timer.isDue) await timer.yield()
    step = search.next()
  }
  return step.value
}
