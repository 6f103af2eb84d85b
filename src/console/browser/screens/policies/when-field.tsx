/**
 * A condition in CEL: names are completed while it is typed, and it is judged by the API that would judge it when it is
 * saved. What is wrong is said with its place, which a button goes to.
 */
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Refusal } from '../../api/request.ts'
import { api } from '../../api/routes.ts'
import { countNoun } from '../../formats.ts'
import type { JsonObject } from '../../parts/forms/schema-form.tsx'
import { type Completion, completionsAt, placeOf } from './condition-completions.ts'

const typingMilliseconds = 250

interface Props {
  body: JsonObject
  required: boolean
  set(value: string | null): void
  fault: string | null
}

export function WhenField({ body, required, set, fault: refused }: Props) {
  const id = useId()
  const text = typeof body.when === 'string' ? body.when : ''
  const fault = useJudged(text, body.stages) ?? refused
  const area = useRef<HTMLTextAreaElement>(null)
  const [caret, setCaret] = useState<number | null>(null)
  const [chosen, setChosen] = useState(-1)
  const answered = Array.isArray(body.stages) && !body.stages.includes('pre_request')
  const { from, found } = caret === null ? { from: 0, found: [] } : completionsAt(text, caret, { answered })
  const goTo = useCaret(area)
  const type = (next: string, at: number | null) => {
    set(next === '' ? null : next)
    setCaret(at)
    setChosen(-1)
  }
  const take = ({ text: completion }: Completion) => {
    const quotes = completion.indexOf('""')
    const end = from + (quotes < 0 ? completion.length : quotes + 1)
    type(text.slice(0, from) + completion + text.slice(caret ?? from), completion.includes('(') ? null : end)
    goTo(end)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const option = found[chosen]
    if (event.key === ' ' && event.ctrlKey) setCaret(area.current?.selectionStart ?? null)
    else if (found.length === 0) return
    else if (event.key === 'ArrowDown') setChosen((chosen + 1) % found.length)
    else if (event.key === 'ArrowUp') setChosen((chosen <= 0 ? found.length : chosen) - 1)
    else if (event.key === 'Enter' && option !== undefined) take(option)
    else if (event.key === 'Escape') setCaret(null)
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <div class="field">
      <label for={id}>When</label>
      <div class="completed">
        <textarea
          id={id}
          ref={area}
          rows={3}
          class="mono"
          value={text}
          required={required}
          spellcheck={false}
          aria-invalid={fault !== null}
          aria-autocomplete="list"
          aria-controls={found.length > 0 ? `${id}-list` : undefined}
          aria-activedescendant={chosen >= 0 && chosen < found.length ? `${id}-${chosen}` : undefined}
          aria-describedby={fault === null ? `${id}-hint` : `${id}-hint ${id}-fault`}
          onInput={({ currentTarget: { value, selectionStart: at } }) =>
            type(value, /[\w.]/.test(value[at - 1] ?? '') ? at : null)
          }
          onKeyDown={onKeyDown}
          onBlur={() => setCaret(null)}
        />
        <span class="hidden" role="status">
          {found.length > 0 && `${countNoun(found.length, 'suggestion')}; arrow keys choose`}
        </span>
        {found.length > 0 && (
          <div role="listbox" id={`${id}-list`} class="completions" aria-label="Suggestions">
            {found.map((completion, index) => (
              <div
                role="option"
                // The field keeps the focus, and names the chosen option.
                tabIndex={-1}
                key={completion.text}
                id={`${id}-${index}`}
                aria-selected={index === chosen}
                onMouseDown={(event) => {
                  event.preventDefault()
                  take(completion)
                }}
              >
                <code>{completion.text}</code> <span class="small quiet">{completion.about}</span>
              </div>
            ))}
          </div>
        )}
      </div>
      <div class="hint" id={`${id}-hint`}>
        A condition in CEL; without one it always applies. Names are suggested while you type, and with Ctrl+Space. For
        example <code>"owner" in token.roles</code>
      </div>
      {fault !== null && (
        <div class="fault" id={`${id}-fault`}>
          {fault} <Place fault={fault} text={text} goTo={goTo} />
        </div>
      )}
    </div>
  )
}

/** Puts the caret somewhere, once what was set is drawn. */
function useCaret(area: { current: HTMLTextAreaElement | null }): (at: number) => void {
  const [wanted, setWanted] = useState<{ at: number } | null>(null)
  useLayoutEffect(() => {
    if (wanted === null) return
    area.current?.focus()
    area.current?.setSelectionRange(wanted.at, wanted.at)
  }, [wanted])
  return (at) => setWanted({ at })
}

/** The words around the place that is wrong, and a way there. */
function Place({ fault, text, goTo }: { fault: string; text: string; goTo(at: number): void }) {
  const place = placeOf(fault, text)
  if (place === null) return null
  const wrong = /^[\w.]+|^[=!<>&|+*/%-]+|^./s.exec(text.slice(place.at))?.[0] ?? ' '
  return (
    <span class="row">
      <code>
        {text.slice(Math.max(0, place.at - 24), place.at)}
        <mark>{wrong}</mark>
        {text.slice(place.at + wrong.length, place.at + wrong.length + 24)}
      </code>
      <button type="button" class="plain" onClick={() => goTo(place.at)}>
        Line {place.line}, column {place.column}
      </button>
    </span>
  )
}

/** What is wrong with a condition, or null; asked once the typing rests. */
function useJudged(text: string, stages: unknown): string | null {
  const [fault, setFault] = useState<string | null>(null)
  const stageList = JSON.stringify(stages)
  useEffect(() => {
    setFault(null)
    if (text.trim() === '') return
    const abort = new AbortController()
    const timer = setTimeout(() => {
      const probe = {
        name: 'probe',
        kind: 'audit',
        stages: JSON.parse(stageList ?? '[]'),
        config: { reason_code: 'probe' },
        when: text,
      }
      const request = { model: 'simulator/echo', messages: [] }
      api('POST /v1/policies/test', { body: { policies: [probe], request }, signal: abort.signal }).catch(
        (error: unknown) => {
          const about = error instanceof Refusal && error.param?.endsWith('.when') === true
          if (about) setFault(error.message)
        },
      )
    }, typingMilliseconds)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [text, stageList])
  return fault
}
