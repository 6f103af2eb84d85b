/** Small pieces of text that many screens show: instants, ids that can be copied, bars of how much is used. */
import type { ComponentChildren } from 'preact'
import { aboutAgo, ago, dateAndTime, fullTime, percent, shortId } from '../formats.ts'
import { showToast } from './frame/toast.tsx'
import { Icon } from './icon.tsx'
import { userText } from './user-text.tsx'

interface TimeProps {
  at: string | null | undefined
  none?: string
  /** Known to the minute only. */
  about?: boolean
}

export const Time = ({ at, none = 'Never', about = false }: TimeProps) =>
  at == null ? (
    <span class="quiet">{none}</span>
  ) : (
    <time dateTime={at} title={about ? dateAndTime(at) : fullTime(at)}>
      {about ? aboutAgo(at) : ago(at)}
    </time>
  )

/** An explanation of the API, where what stands between backticks is a name as it is written. */
export const explained = (text: ComponentChildren): ComponentChildren =>
  typeof text === 'string'
    ? text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))
    : text

/** Puts text on the clipboard and says so; where the browser refuses, the text can still be selected. */
export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    showToast(`${what} copied`)
  } catch {
    // No leave, or no secure context: there is nothing else a page can do.
    showToast(`The browser blocked copying. Select the text and copy it manually.`)
  }
}

export const CopyButton = ({ text, what }: { text: string; what: string }) => (
  <button type="button" class="plain icon" aria-label={`Copy ${what.toLowerCase()}`} onClick={() => copy(text, what)}>
    <Icon name="copy" />
  </button>
)

export const Id = ({ id, what = 'Id', short = false }: { id: string; what?: string; short?: boolean }) => (
  <span class={`row tight ${short ? 'nowrap' : ''}`}>
    <code title={id}>{userText(short ? shortId(id) : id)}</code>
    <CopyButton text={id} what={what} />
  </span>
)

/** How much of a limit is used, in words for those who do not see the bar. */
export function UsedBar({ used, limit, text }: { used: number; limit: number; text: string }) {
  const share = limit === 0 ? 1 : Math.min(1, used / limit)
  const state = share >= 1 ? 'full' : share >= 0.8 ? 'near' : ''
  return (
    <div class="used">
      <progress class={`bar ${state}`} value={share} max={1} aria-label={text} title={`${percent(share)} used`} />
      <span class="small quiet number">{text}</span>
    </div>
  )
}

/** A command to copy: what makes something happen. */
export const Command = ({ text, what = 'Command' }: { text: string; what?: string }) => (
  <div class="command">
    <pre>{text}</pre>
    <CopyButton text={text} what={what} />
  </div>
)

export const Facts = ({ facts }: { facts: readonly (readonly [name: string, value: ComponentChildren] | null)[] }) => (
  <dl class="facts">
    {facts.map((fact) =>
      fact === null ? null : (
        <>
          <dt key={`${fact[0]}-name`}>{fact[0]}</dt>
          <dd key={fact[0]}>{userText(fact[1])}</dd>
        </>
      ),
    )}
  </dl>
)
