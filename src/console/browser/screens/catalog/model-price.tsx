/** What a model costs at each of its targets, and whose price that is. */
import type { EffectivePrice } from '../../../../providers/catalog/model-resource.ts'
import type { PriceRecord } from '../../../../providers/prices/price-record.ts'
import { humanize, money, number } from '../../formats.ts'
import { Facts } from '../../parts/small.tsx'
import { userText } from '../../parts/user-text.tsx'

/** Whose price it is, in few words. */
export function sourceWords({ source, date }: Pick<EffectivePrice, 'source' | 'date'>): string {
  if (source === null) return 'nobody states a price'
  if (source === 'operator') return 'set here'
  return date === null ? 'the default of its provider' : `price table of ${date}`
}

const perMillion = ({ input_per_million: input, output_per_million: output }: PriceRecord): string =>
  `${money(input)} / ${money(output)}`

/** In a list: a line for each price that differs. */
export function PriceLines({ prices }: { prices: readonly EffectivePrice[] }) {
  const lines = prices.map((each) => ({
    price: each.price === null ? 'Unknown' : perMillion(each.price),
    source: sourceWords(each),
  }))
  const different = lines.filter(
    ({ price, source }, index) => lines.findIndex((one) => one.price === price && one.source === source) === index,
  )
  return (
    <>
      {different.map(({ price, source }) => (
        <div key={`${price} ${source}`}>
          <span class="nowrap">{price}</span>
          <div class="small quiet">{source}</div>
        </div>
      ))}
    </>
  )
}

/** Every unit price at every target. */
export const EffectivePrices = ({ prices }: { prices: readonly EffectivePrice[] }) => (
  <section class="stack close" aria-label="What it costs now">
    <h3>What it costs now</h3>
    {prices.map((each) => (
      <div class="stack close" key={`${each.provider}/${each.upstream_model}`}>
        <p>
          <strong>{userText(`${each.provider}/${each.upstream_model}`)}</strong>{' '}
          <span class="quiet">({sourceWords(each)})</span>
        </p>
        {each.price === null ? (
          <p class="note warn">Tokens with a budget are refused here. State a price to let them use it.</p>
        ) : (
          <Facts facts={unitPrices(each.price)} />
        )}
      </div>
    ))}
  </section>
)

/** The names of prices that are not `NAME_per_million` tokens. */
const unitWords: Readonly<Record<string, string>> = {
  cache_write_hour_per_million: 'Cache write for an hour, a million tokens',
  audio_per_hour: 'Audio, an hour',
  per_million_characters: 'Spoken text, a million characters',
  per_image: 'An image',
  per_thousand_tool_uses: 'Tools that the provider runs, a thousand uses',
  per_thousand_requests: 'Beside the tokens, a thousand requests',
}

/** `cached_input_per_million` is `Cached input, a million tokens`. */
const titleOf = (name: string): string =>
  unitWords[name] ?? `${humanize(name.replace('_per_million', ''))}, a million tokens`

function unitPrices({ tiers = [], ...rates }: PriceRecord): (readonly [string, string])[] {
  const facts = Object.entries(rates).map(([name, price]) => [titleOf(name), money(price)] as const)
  const larger = tiers.map(
    (tier) => [`Input / output from ${number(tier.from_input_tokens)} input tokens on`, perMillion(tier)] as const,
  )
  return [...facts, ...larger]
}
