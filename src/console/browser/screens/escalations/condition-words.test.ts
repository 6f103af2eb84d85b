import { expect, test } from 'bun:test'
import { conditionWords } from './condition-words.ts'

test('says usual conditions in words', () => {
  expect(
    [
      'request.tools.exists(t, t == "transfer")',
      'request.text.contains("open the vault")',
      'request.tool.name == "bank__transfer" && request.tool.arguments["sum"] > 100',
      '(model.provider in ["openai", "azure"]) || !request.text.contains("ok")',
      'response.tool_calls.exists(name, name in ["a", "b"])',
      '"admin" in token.roles',
      'double(request.tool.arguments.sum) >= 99.5',
      '!(request.model == "m" && size(request.messages) > 20)',
      'request.text.matches("(?i)wire|iban")',
    ].map(conditionWords),
  ).toEqual([
    'the request offers the tool “transfer”',
    'the text of the request contains “open the vault”',
    'the tool that the request calls is “bank__transfer”, and the argument “sum” is more than 100',
    'the provider is one of “openai”, “azure”, or the text of the request does not contain “ok”',
    'the answer calls one of the tools “a”, “b”',
    '“admin” is among the roles of the token',
    'the argument “sum” is at least 99.5',
    'it is not so that the model asked for is “m”, and there are more than 20 in the messages of the request',
    'the text of the request matches the pattern “(?i)wire|iban”',
  ])
})

test('leaves a part without words as it is written, and splits at no operator within a text', () => {
  expect(conditionWords('now.getHours() < 6 && request.text.contains("a && (b")')).toBe(
    '`now.getHours() < 6`, and the text of the request contains “a && (b”',
  )
})
