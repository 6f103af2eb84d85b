/** What to do where somebody changed a record while it stood in a form: what they made of it beside what one wrote. */
import type { Refusal } from '../../api/request.ts'
import { humanize, withTimes } from '../../formats.ts'
import { ErrorNote, Show, useLoaded } from '../loaded.tsx'
import { userText } from '../user-text.tsx'
import type { JsonObject } from './schema-form.tsx'

interface Props<Theirs> {
  refusal: Refusal
  /** The record as it is now. */
  read(): Promise<Theirs>
  /** The fields of it that the form has. */
  fieldsOf(theirs: Theirs): JsonObject
  /** What is about to be changed, by field. */
  mine: JsonObject
  saveMine(theirs: Theirs): void
  takeTheirs(theirs: Theirs): void
}

/** What was refused; where the record was changed meanwhile, both versions and the choice between them. */
export function Conflict<Theirs>({ refusal, ...choice }: Props<Theirs>) {
  if (refusal.status !== 412) return <ErrorNote refusal={refusal} />
  return <Choice key={refusal.requestId} {...choice} />
}

function Choice<Theirs>({ read, fieldsOf, mine, saveMine, takeTheirs }: Omit<Props<Theirs>, 'refusal'>) {
  const found = useLoaded('theirs', read)
  return (
    <div class="note warn" role="alert">
      <div class="stack close">
        <strong>Someone else changed this</strong>
        <Show of={found} rows={2}>
          {(theirs) => {
            const fields = fieldsOf(theirs)
            return (
              <>
                <p>Your version is kept here. It differs from the saved one in:</p>
                <dl class="facts">
                  {Object.entries(mine).map(([name, value]) => (
                    <div key={name}>
                      <dt>{humanize(name)}</dt>
                      <dd>Saved now: {written(fields[name])}</dd>
                      <dd>Yours: {written(value)}</dd>
                    </div>
                  ))}
                </dl>
                <div class="row">
                  <button type="button" onClick={() => saveMine(theirs)}>
                    Overwrite with mine
                  </button>
                  <button type="button" onClick={() => takeTheirs(theirs)}>
                    Discard mine
                  </button>
                </div>
              </>
            )
          }}
        </Show>
      </div>
    </div>
  )
}

const written = (value: unknown) =>
  value == null ? 'nothing' : userText(withTimes(typeof value === 'string' ? value : JSON.stringify(value)))
