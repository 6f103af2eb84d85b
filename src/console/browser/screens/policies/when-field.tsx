/** A condition in CEL, judged while it is typed by the API that would judge it when it is saved. */
import { useEffect, useState } from 'preact/hooks'
import { Refusal } from '../../api/request.ts'
import { api } from '../../api/routes.ts'
import { TextArea } from '../../parts/field.tsx'
import type { JsonObject } from '../../parts/schema-form.tsx'

const typingMilliseconds = 250
const names =
  'request {family, model, text, messages, tools, stream, headers, session_id}, response {text, tool_calls, status}, token {id, purpose, roles, team_id, user_id, gateway_id, metadata}, model {id, provider}, now'

interface Props {
  body: JsonObject
  required: boolean
  set(value: string | null): void
  fault: string | null
}

export function WhenField({ body, required, set, fault }: Props) {
  const text = typeof body.when === 'string' ? body.when : ''
  const judged = useJudged(text, body.stages)
  return (
    <TextArea
      label={required ? 'When' : 'When (optional)'}
      hint={
        <>
          A condition in CEL; without one it always applies. It may use {names}. For example{' '}
          <code>"owner" in token.roles</code>
        </>
      }
      value={text}
      set={(next) => set(next === '' ? null : next)}
      rows={3}
      mono
      required={required}
      fault={judged ?? fault}
    />
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
