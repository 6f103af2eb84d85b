/**
 * Whether an address is one that a template stands for (RFC 6570). What stands in braces may be anything within one
 * segment, as in level 1; `{+x}` and `{#x}` anything at all; `{/x}`, `{?x}`, `{&x}`, `{;x}` and `{.x}` what they begin
 * with, or nothing. Matched in time that grows with the address alone (RE2): servers write templates, callers addresses.
 */
import { RE2JS } from 're2js'

const expressions: Readonly<Record<string, string>> = {
  '+': '.*',
  '#': '.*',
  '/': '(?:/[^?#]*)?',
  '?': '(?:\\?[^#]*)?',
  '&': '(?:&[^#]*)?',
  ';': '(?:;[^/?#]*)?',
  '.': '(?:\\.[^/?#]*)?',
}
const withinSegment = '[^/?#]+'

export function matchesTemplate(template: string, uri: string): boolean {
  const pattern = template
    .split(/(\{[^{}]*\})/)
    .map((part) => (part.startsWith('{') && part.endsWith('}') ? expressionOf(part) : RE2JS.quote(part)))
    .join('')
  return RE2JS.compile(pattern, RE2JS.DOTALL).matches(uri)
}

const expressionOf = (part: string): string => expressions[part.charAt(1)] ?? withinSegment
