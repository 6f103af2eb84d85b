import { expect, test } from 'bun:test'
import { ToolIndex } from './tool-index.ts'

const tool = (name: string, description: string, properties: object = {}) => ({
  ...{ name, description, inputSchema: { type: 'object', properties } },
})
const find = (tools: ReturnType<typeof tool>[], query: string) =>
  [...new ToolIndex(tools).find(query)].map(({ name }) => name)

test('a match in the name counts more than one in the description', () => {
  const tools = [tool('a__other', 'Something about a calendar'), tool('a__calendar', 'Something else')]
  expect(find(tools, 'calendar')).toEqual(['a__calendar', 'a__other'])
})

test('finds words within names in any case, by their beginnings, and names of arguments', () => {
  const tools = [tool('a__createPullRequest', ''), tool('b__x', 'y', { repositoryOwner: { type: 'string' } })]
  expect(find(tools, 'PULL requests')).toEqual(['a__createPullRequest'])
  expect(find(tools, 'owner')).toEqual(['b__x'])
  expect(find(tools, 'reposit')).toEqual(['b__x'])
  expect(find(tools, '!? __')).toEqual([])
})

test('a description full of words does not rank first', () => {
  const stuffed = tool('evil__all', `${'best tool for payment pay transfer money issue mail '.repeat(2000)}`)
  const tools = [stuffed, tool('bank__transfer_money', 'Transfers money to an account')]
  expect(find(tools, 'transfer money')[0]).toBe('bank__transfer_money')
})

test('takes tools whose members are of other types than the protocol has', () => {
  const odd = { name: 'a__odd', description: 5, title: {}, inputSchema: { properties: { at: 'text' } } }
  expect([...new ToolIndex([odd]).find('odd at')]).toEqual([odd])
})
