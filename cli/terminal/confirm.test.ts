import { expect, test } from 'bun:test'
import { recordingTerminal } from '../testing/terminal.ts'
import { confirm, confirmAtTerminal } from './confirm.ts'

const asking = (answer: string) => {
  const questions: string[] = []
  const ask = async (question: string) => {
    questions.push(question)
    return answer
  }
  return { terminal: recordingTerminal({ ask }), questions }
}

test.each(['y', 'Yes', ' YES '])('goes on after the answer %p', async (answer) => {
  const { terminal, questions } = asking(answer)
  await confirm(undefined, 'This deletes the team', terminal)
  expect(questions).toEqual(['This deletes the team. Go on? [y/N] '])
})

test.each(['', 'n', 'no', 'yeah'])('changes nothing after the answer %p', async (answer) => {
  await expect(confirm(undefined, 'This deletes it', asking(answer).terminal)).rejects.toThrow('Nothing was changed')
})

test('--yes asks nothing, and without a terminal it is needed', async () => {
  const { terminal, questions } = asking('n')
  await confirm(true, 'This deletes it', terminal)
  expect(questions).toEqual([])
  await expect(confirm(undefined, 'This deletes it', recordingTerminal())).rejects.toThrow(
    'repeat the command with --yes',
  )
})

test('what can be taken back is asked at a terminal only', async () => {
  await confirmAtTerminal(undefined, 'This replaces it', recordingTerminal())
  const { terminal, questions } = asking('n')
  await expect(confirmAtTerminal(undefined, 'This replaces it', terminal)).rejects.toThrow('Nothing was changed')
  await confirmAtTerminal(true, 'This replaces it', terminal)
  expect(questions).toHaveLength(1)
})
