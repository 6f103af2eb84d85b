/** What a policy, as it stands in the form, would have said to recorded requests, and where it finds something in them. */
import { useState } from 'preact/hooks'
import { href } from '../../address.ts'
import { api, type Replay } from '../../api/routes.ts'
import { countNoun, humanize, number } from '../../formats.ts'
import type { JsonObject } from '../../parts/forms/schema-form.tsx'
import { useAction } from '../../parts/frame/dialog.tsx'
import { ErrorNote } from '../../parts/loaded.tsx'
import { Time } from '../../parts/small.tsx'
import { Table } from '../../parts/table.tsx'
import { showInvisible } from '../../parts/user-text.tsx'
import { VerdictBadge } from '../../parts/verdict.tsx'
import { timeRange } from '../../time-range.ts'

const shownAtMost = 20

export function Recorded({ body }: { body: JsonObject }) {
  const [replay, setReplay] = useState<Replay | null>(null)
  const { since } = timeRange()
  const { run, busy, refusal } = useAction(
    () => api('POST /v1/policies/replay', { body: { since, policy: { ...body, name: body.name || 'unnamed' } } }),
    setReplay,
  )
  return (
    <div class="stack close">
      <h3>Recorded requests</h3>
      <p class="quiet">The result of the policy in the form for the requests of the time range above.</p>
      <div class="row">
        <button type="button" disabled={busy} onClick={run}>
          {busy ? 'Looking…' : 'Replay'}
        </button>
      </div>
      {refusal !== null && <ErrorNote refusal={refusal} />}
      {replay !== null && <Replayed replay={replay} />}
    </div>
  )
}

const Replayed = ({ replay }: { replay: Replay }) => (
  <>
    <p role="status">
      Of {countNoun(replay.examined, 'request')} it applies to {number(replay.matched)}
      {replay.undecided > 0 && `; ${number(replay.undecided)} could not be decided: what it looks for is not recorded`}.
      {!replay.complete && ' Older requests were not examined.'}
    </p>
    <div class="row">
      {Object.entries(replay.verdicts).map(([verdict, count]) => (
        <span key={verdict} class="tag">
          {humanize(verdict)} {number(count)}
        </span>
      ))}
    </div>
    <Table
      label="Requests it would have changed or refused"
      rows={replay.results.slice(0, shownAtMost)}
      keyOf={({ event_id }) => event_id}
      columns={[
        {
          title: 'Time',
          cell: ({ event_id, timestamp }) => (
            <a href={href(`/traffic/${event_id}`)}>
              <Time at={timestamp} />
            </a>
          ),
        },
        { title: 'Was', cell: ({ recorded_verdict }) => <VerdictBadge verdict={recorded_verdict} /> },
        { title: 'Would be', cell: ({ verdict }) => <VerdictBadge verdict={verdict} /> },
        { title: 'Found in the text', cell: ({ excerpts }) => <Excerpts of={excerpts} /> },
        ...(replay.results.some(({ condition }) => condition.length > 0)
          ? [{ title: 'Because', cell: (result: Result) => <Because of={result.condition} /> }]
          : []),
      ]}
      empty={
        <p class="quiet">
          {replay.undecided < replay.matched
            ? 'It would have allowed every request that can be decided.'
            : 'None of these requests can be decided by what is recorded.'}
        </p>
      }
    />
  </>
)

type Result = Replay['results'][number]

/** The parts of the condition that held, in words. */
const Because = ({ of }: { of: Result['condition'] }) => (
  <ul class="stack close small">
    {of.map(({ part, values }) => (
      <li key={part} class="wrap">
        <code>{part}</code> is true
        {values.map(({ name, value }) => (
          <span key={name}>
            {value === 'true' ? null : (
              <>
                : <code>{name}</code> is {showInvisible(value)}
              </>
            )}
          </span>
        ))}
      </li>
    ))}
  </ul>
)

const Excerpts = ({ of }: { of: Result['excerpts'] }) =>
  of.length === 0 ? (
    <span class="quiet">–</span>
  ) : (
    <ul class="stack close small">
      {of.map(({ before, found, after, label }, index) => (
        <li key={index} class="wrap">
          {showInvisible(before)}
          <mark title={label}>{showInvisible(found)}</mark>
          {showInvisible(after)}
        </li>
      ))}
    </ul>
  )
