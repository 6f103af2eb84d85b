/**
 * How a reviewer decides: one key, with a note where there is something to say. A decision takes effect after some
 * seconds, and until then it can be undone.
 */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { api, type Escalation } from '../../api/routes.ts'
import { clockTime } from '../../formats.ts'
import { SelectField, TextArea } from '../../parts/forms/field.tsx'
import { useAction } from '../../parts/frame/dialog.tsx'

export type Decision = 'allow' | 'block'

/** How long a decision can be undone. */
const undoSeconds = 10

/** What is written beside one request; that of another one does not count for it. */
export interface Draft {
  id: string
  note: string
  /** Seconds in which the same request may be sent once; empty: not at all. */
  grant: string
}

export const emptyDraft = (id: string): Draft => ({ id, note: '', grant: '900' })

/** Decides about equal requests, one after another. Resolves with what each has become. */
export async function decideAll(all: readonly Escalation[], decision: Decision, { note, grant }: Draft) {
  const decided: Escalation[] = []
  for (const { id, token } of all) {
    const body = {
      resolution: decision,
      undo_seconds: undoSeconds,
      ...(note.trim() === '' ? {} : { note: note.trim() }),
      ...(decision === 'allow' && grant !== '' && !token.revoked ? { grant_once_seconds: Number(grant) } : {}),
    }
    decided.push(await api('POST /v1/escalations/{id}/resolve', { params: { id }, body }))
  }
  return decided
}

interface DecideProps {
  draft: Draft
  set(draft: Draft): void
  /** The equal requests that are decided about at once. */
  about: readonly Escalation[]
  busy: boolean
  decide(decision: Decision): void
  /** What else can be done with them, beside the decision. */
  children?: ComponentChildren
}

export function Decide({ draft, set, about, busy, decide, children }: DecideProps) {
  const of = about.length === 1 ? '' : ` all ${about.length}`
  const revoked = about.filter(({ token }) => token.revoked)
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys of the note within, which has its own role
    <div
      class="stack"
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
        event.preventDefault()
        decide(event.shiftKey ? 'block' : 'allow')
      }}
    >
      <TextArea
        label="Note"
        hint="Why, for the record. Ctrl+Enter allows, Ctrl+Shift+Enter blocks."
        value={draft.note}
        set={(note) => set({ ...draft, note })}
        rows={2}
      />
      {revoked.length > 0 && <p class="note warn">{revokedWords(revoked, about.length)}</p>}
      {revoked.length < about.length && (
        <SelectField
          label="If allowed, may it be sent again?"
          hint="The same token may send exactly the same request once. Gatehouse does not send it."
          value={draft.grant}
          set={(grant) => set({ ...draft, grant })}
          options={[
            ['900', 'Yes, within 15 minutes'],
            ['3600', 'Yes, within an hour'],
            ['86400', 'Yes, within a day'],
            ['', 'No, only record the decision'],
          ]}
        />
      )}
      <div class="row">
        <button type="button" class="primary" disabled={busy} onClick={() => decide('allow')}>
          Allow{of}
        </button>
        <button type="button" class="danger" disabled={busy} onClick={() => decide('block')}>
          Block{of}
        </button>
        {children}
      </div>
    </div>
  )
}

/** What an approval can still do where tokens are revoked. */
function revokedWords(revoked: readonly Escalation[], count: number): string {
  const names = revoked.map(({ token }) => token.name ?? token.id).join(', ')
  const [tokens, none] = revoked.length === 1 ? ['token', 'it'] : ['tokens', 'them']
  const others = revoked.length < count ? ' What is chosen below holds for the others.' : ''
  return `The ${tokens} ${names} ${revoked.length === 1 ? 'is' : 'are'} revoked: no request can be sent with ${none} again. An approval only records the decision.${others}`
}

/** Takes back decisions that have not taken effect yet. */
export function useUndo(decisions: readonly Escalation[], undone: (escalation: Escalation) => void) {
  return useAction(
    async () => {
      for (const { id } of decisions) undone(await api('POST /v1/escalations/{id}/undo', { params: { id } }))
    },
    () => undefined,
  )
}

/** What was just decided, with the seconds that are left to undo it. */
export function Undo({ decisions, busy, undo }: { decisions: readonly Escalation[]; busy: boolean; undo(): void }) {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500)
    return () => clearInterval(timer)
  }, [])
  const [first] = decisions
  if (first === undefined) return null
  const seconds = Math.max(0, Math.ceil((Date.parse(first.takes_effect_at ?? '') - now) / 1000))
  const word = first.resolution === 'allow' ? 'Allowed' : 'Blocked'
  return (
    <div class="note row between" role="status">
      <span>
        {decisions.length === 1 ? word : `${decisions.length} decisions`}: takes effect at{' '}
        {clockTime(first.takes_effect_at ?? now)}.
      </span>
      <button type="button" disabled={busy} onClick={undo}>
        Undo
        <span aria-hidden="true">
          {' '}
          ({seconds} s) <kbd>u</kbd>
        </span>
      </button>
    </div>
  )
}
