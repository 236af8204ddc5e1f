import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { entryEnv } from '../support/gateway.ts'

// Each takes up to half a minute on two idle processors; a busy machine gets several times that.
it.each([
  ['reloads', /growth .*: \d/],
  ['kills', /sqlite: 5 kills during \d+ writes/],
  ['responses', /100000 responses compared: \d+ accepted/],
])(
  'the campaign %s passes in its short form',
  async (name, result) => {
    const program = fileURLToPath(new URL(`./${name}.ts`, import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [program, '--short'], { env: entryEnv })
    expect(stdout).toMatch(result)
  },
  180_000,
)
