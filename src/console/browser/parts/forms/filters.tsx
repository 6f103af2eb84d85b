/** Filters as chips; each is a member of the address's query. */
import { useEffect, useState } from 'preact/hooks'
import { queryValue, setQuery } from '../../address.ts'
import { humanize } from '../../formats.ts'
import { Icon } from '../icon.tsx'
import { type Finder, useOptions } from './choice.tsx'
import { Suggestions } from './field.tsx'

export interface Filter {
  /** The query's member. */
  name: string
  label: string
  /** What can be chosen; absent: text to type. */
  options?: readonly (string | readonly [value: string, label: string])[]
  /** Names that the browser offers for what is typed; anything else may be typed too. */
  suggest?: (typed: string) => Promise<readonly string[]>
  /** Suggestions are asked for again with each letter, since there are too many to read at once. */
  searched?: boolean
  /** Finds records by their names, of which the address has the id; for lists that are too long for `options`. */
  finder?: Finder | undefined
  /** What holds where the address says nothing, instead of any. */
  usual?: string
}

interface Props {
  filters: readonly Filter[]
  /** Members of the query that hold for what was found before, such as which of it is open. */
  drops?: readonly string[]
}

export const Filters = ({ filters, drops = [] }: Props) => (
  // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as a row in every browser
  <div class="filters" role="group" aria-label="Filters">
    {filters.map(({ finder, ...filter }) =>
      finder === undefined ? (
        <Chip key={filter.name} {...filter} drops={drops} />
      ) : (
        <FoundChip key={filter.name} {...filter} finder={finder} drops={drops} />
      ),
    )}
  </div>
)

function Chip({
  name,
  label,
  options,
  usual,
  drops,
  suggest,
  searched = false,
}: Omit<Filter, 'finder'> & { drops: readonly string[] }) {
  const value = queryValue(name) ?? ''
  const id = `filter-${name}`
  /** What is typed and not taken yet: the screen may be drawn anew meanwhile, for newer rows. */
  const [typed, setTyped] = useState<string | null>(null)
  const [offered, setOffered] = useState<readonly string[]>([])
  const set = (text: string | null) => {
    setTyped(null)
    setQuery({ ...Object.fromEntries(drops.map((dropped) => [dropped, null])), [name]: text })
  }
  const take = (event: { currentTarget: HTMLSelectElement | HTMLInputElement }) => set(event.currentTarget.value.trim())
  /** A person without the permission to read the names types them. */
  const offer = (text: string) => suggest?.(text).then(setOffered, () => undefined)
  return (
    <span class={`chip ${value === '' ? '' : 'on'}`}>
      <label for={id}>{label}</label>
      {options === undefined ? (
        <input
          id={id}
          value={typed ?? value}
          placeholder="any"
          list={suggest === undefined ? undefined : `${id}-list`}
          onFocus={(event) => offer(event.currentTarget.value)}
          onInput={(event) => {
            setTyped(event.currentTarget.value)
            if (searched) offer(event.currentTarget.value)
          }}
          onChange={take}
          onBlur={() => setTyped(null)}
        />
      ) : (
        <select id={id} value={value === '' ? (usual ?? '') : value} onChange={take}>
          {usual === undefined && <option value="">any</option>}
          {options.map((option) => {
            const [key, text] = typeof option === 'string' ? [option, humanize(option)] : option
            return (
              <option value={key} key={key}>
                {text}
              </option>
            )
          })}
        </select>
      )}
      {suggest !== undefined && <Suggestions id={`${id}-list`} of={offered} />}
      {value !== '' && (
        <button type="button" aria-label={`Clear ${label.toLowerCase()}`} onClick={() => set(null)}>
          <Icon name="close" />
        </button>
      )}
    </span>
  )
}

interface FoundProps extends Pick<Filter, 'name' | 'label'> {
  finder: Finder
  drops: readonly string[]
}

/** A record by its name: the browser offers those whose names have what is typed. */
function FoundChip({ name, label, finder, drops }: FoundProps) {
  const value = queryValue(name) ?? ''
  const id = `filter-${name}`
  /** What is typed, while it names none of them. */
  const [typed, setTyped] = useState<string | null>(null)
  const [focus, setFocus] = useState<'not yet' | 'here' | 'left'>('not yet')
  const found = useOptions(finder, typed ?? '', value === '' ? [] : [value], { wait: focus === 'not yet' })
  const options = found.options ?? []
  const shown = options.find(([one]) => one === value)?.[1] ?? ''
  const set = (record: string | null) => {
    setTyped(null)
    if ((record ?? '') === value) return
    setQuery({ ...Object.fromEntries(drops.map((dropped) => [dropped, null])), [name]: record })
  }
  const meant = options.find(([, called]) => called === typed)?.[0]
  useEffect(() => {
    // A whole name may be typed before the search that offers it has answered.
    if (meant !== undefined) set(meant)
  }, [meant])
  const said = () => {
    if (typed === null || found.loading) return ''
    if (!options.some(([, called]) => called.toLowerCase().includes(typed.toLowerCase())))
      return 'No name has this text'
    return focus === 'left' ? 'Choose one of the names in the list' : ''
  }
  return (
    <span class={`chip ${value === '' ? '' : 'on'}`}>
      <label for={id}>{label}</label>
      <input
        id={id}
        value={typed ?? shown}
        placeholder="any"
        list={`${id}-list`}
        aria-describedby={`${id}-status`}
        onFocus={() => setFocus('here')}
        onInput={({ currentTarget: { value: text } }) => (text === '' ? set(null) : setTyped(text))}
        onBlur={() => {
          setFocus('left')
          // The filter that holds is shown again; without one, the text stays with what is wrong with it.
          if (value !== '') setTyped(null)
        }}
      />
      <Suggestions id={`${id}-list`} of={options.map(([, called]) => called)} />
      <span class="small" id={`${id}-status`} role="status">
        {found.refusal === null ? said() : 'The names could not be read'}
      </span>
      {(value !== '' || typed !== null) && (
        <button type="button" aria-label={`Clear ${label.toLowerCase()}`} onClick={() => set(null)}>
          <Icon name="close" />
        </button>
      )}
    </span>
  )
}
