/** What a screen reads from the API, in all its states: on its way, there, refused, failed. */
import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { href } from '../address.ts'
import { Refusal } from '../api/request.ts'
import { caller, isSessionOver } from '../session.ts'

export interface Loaded<Value> {
  /** What came last; stays while it is asked for again, so that nothing jumps. */
  value: Value | undefined
  refusal: Refusal | null
  loading: boolean
  /** Reads again. A read that is on its way is given up: it may not see what was just written. */
  reload(): void
  /** Reads again where nothing is on its way: a person who presses twice does not start it over. */
  retry(): void
  /** Takes a newer value from elsewhere, such as the answer of a write. */
  set(value: Value): void
}

/** How soon a read that did not reach the control plane, or that it could not answer, is made again. */
const recoveryMs = 5000

const mayRecover = ({ status }: Refusal): boolean => status === 0 || status >= 500

/** Whether the same question will be refused again. */
const isFinal = ({ status }: Refusal): boolean => status === 400 || status === 422

/**
 * Reads when the screen appears and whenever `key` changes; a read that is overtaken is given up. `everyMs` reads again
 * and again, while the page is looked at. While it is to `wait`, it reads nothing. Another `moment` asks the same of
 * another time: it reads again, and keeps the value where that is refused. Retries network errors and 5xx until
 * they succeed; never retries 400 and 422.
 */
export function useLoaded<Value>(
  key: string,
  load: (signal: AbortSignal) => Promise<Value>,
  { everyMs = 0, wait = false, moment }: { everyMs?: number; wait?: boolean; moment?: string | undefined } = {},
): Loaded<Value> {
  const [state, setState] = useState<{ key: string; value: Value | undefined; refusal: Refusal | null }>({
    key,
    value: undefined,
    refusal: null,
  })
  const [turn, setTurn] = useState(0)
  const [loading, setLoading] = useState(true)
  const latest = useRef(load)
  latest.current = load
  const reading = useRef(false)
  // With the first drawing, not after it: what is read decides how long the first screen takes.
  useLayoutEffect(() => {
    if (wait) return
    const abort = new AbortController()
    setLoading(true)
    reading.current = true
    latest.current(abort.signal).then(
      (value) => {
        if (abort.signal.aborted) return
        reading.current = false
        setState({ key, value, refusal: null })
        setLoading(false)
      },
      (error: unknown) => {
        if (abort.signal.aborted) return
        reading.current = false
        setState((before) => ({ key, value: before.key === key ? before.value : undefined, refusal: asRefusal(error) }))
        setLoading(false)
      },
    )
    return () => abort.abort()
  }, [key, turn, wait, moment])
  const over = isSessionOver.value
  useEffect(() => {
    if (!over && state.refusal?.status === 401) setTurn((before) => before + 1)
  }, [over])
  const failed = state.key === key ? state.refusal : null
  const again = failed === null ? everyMs : mayRecover(failed) ? recoveryMs : isFinal(failed) ? 0 : everyMs
  useEffect(() => {
    if (again === 0 || wait) return
    const timer = setInterval(() => {
      // A read that takes longer is waited for.
      if (!document.hidden && !isSessionOver.peek() && !reading.current) setTurn((before) => before + 1)
    }, again)
    return () => clearInterval(timer)
  }, [again, wait])
  return {
    value: state.value,
    refusal: state.refusal,
    loading,
    reload: useCallback(() => setTurn((before) => before + 1), []),
    retry: useCallback(() => {
      // While it waits, nothing would be read, and the next press would count as one during a read.
      if (reading.current || wait) return
      // Another press may come before this one is drawn.
      reading.current = true
      setTurn((before) => before + 1)
    }, [wait]),
    set: useCallback((value: Value) => setState({ key, value, refusal: null }), [key]),
  }
}

export function asRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  const message = error instanceof Error ? error.message : String(error)
  return new Refusal(-1, { message: `The console failed: ${message}`, code: 'console', param: null, requestId: null })
}

/** Shows what was read, or why it is not there. */
export function Show<Value>({
  of,
  rows = 4,
  children,
}: {
  of: Loaded<Value>
  /** How many lines the space is held for while it loads. */
  rows?: number
  children: (value: Value) => ComponentChildren
}) {
  if (of.value !== undefined) {
    return (
      <>
        {of.refusal !== null && (
          <ErrorNote refusal={of.refusal} retry={of.retry} kept="The data shown is from the last successful load." />
        )}
        {children(of.value)}
      </>
    )
  }
  if (of.refusal === null) return <Skeleton rows={rows} />
  return <ErrorNote refusal={of.refusal} retry={of.retry} />
}

export const Skeleton = ({ rows }: { rows: number }) => (
  <div class="skeleton" role="status" aria-label="Loading">
    {Array.from({ length: rows }, (_, index) => (
      <span key={index} />
    ))}
  </div>
)

/** Says what happened, what was kept and what to do. */
export function ErrorNote({ refusal, retry, kept }: { refusal: Refusal; retry?: () => void; kept?: string }) {
  const { status, requestId, madeId } = refusal
  const [title, advice, message = refusal.message] = ofRepetition(refusal) ?? explained(status, retry !== undefined)
  return (
    <div class={`note ${status === 403 ? 'warn' : 'danger'}`} role="alert">
      <div class="stack close">
        <strong>{title}</strong>
        <p>
          {message}
          {/[.!?]$/.test(message) ? '' : '.'} {kept} {advice}{' '}
          {madeId !== null && <a href={href(`/tokens/${madeId}`)}>Open it</a>}
        </p>
        {status !== 403 && (retry !== undefined || requestId !== null) && (
          <div class="row">
            {retry !== undefined && (
              <button type="button" onClick={retry}>
                Try again
              </button>
            )}
            {requestId !== null && <span class="small quiet">Request {requestId}</span>}
          </div>
        )}
      </div>
    </div>
  )
}

type Explained = readonly [title: string, advice: string, message?: string]

/** What was sent again, because its answer had not come. */
function ofRepetition({ code }: Refusal): Explained | null {
  if (code === 'idempotency_in_flight')
    return ['The request may still be running', 'Try again in a minute.', 'It was sent before and will not run twice']
  if (code !== 'idempotency_key_used') return null
  const message = 'The first request created it, but the answer with its secret was lost. A secret is shown only once'
  return ['It was created already', 'Rotate it to get another secret, or revoke it.', message]
}

/** An owner or an admin has nobody to ask for more: the answer's own message says what stands in the way. */
function adviceToForbidden(): string {
  const mayGiveRights = caller.value?.roles.some((role) => role === 'owner' || role === 'admin') ?? false
  return mayGiveRights ? '' : 'An owner or admin can give you the permission.'
}

function explained(status: number, isRead: boolean): Explained {
  if (status === 403) return ['You do not have permission', adviceToForbidden()]
  if (status === 404) return ['Not found', 'It may have been deleted or belong to another team.']
  if (status === 409) return ['Conflict', '']
  if (status === 412) return ['Someone else changed this', 'Reload to see that change, then make yours again.']
  if (status === 422 || status === 400) return ['Invalid request', '']
  if (status === 0 || status === 503) return ['Not reachable', isRead ? 'This page asks again by itself.' : '']
  return ['Request failed', 'Reload the page to see the current state.']
}
