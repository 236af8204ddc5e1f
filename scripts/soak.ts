import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

// `npm run soak`: the long campaigns, each a program in gateway/test/soak, one after the other. `--short`
// runs the form that the tests run, and names pick some: `npm run soak -- --short reload`.

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    short: { type: 'boolean', default: false },
    step: { type: 'string', multiple: true, default: [] },
    keep: { type: 'boolean', default: false },
  },
})

process.chdir(fileURLToPath(new URL('..', import.meta.url)))
const campaigns = globSync('gateway/test/soak/*.ts')
  .filter((file) => !file.endsWith('.test.ts'))
  .filter((file) => positionals.length === 0 || positionals.some((name) => basename(file).startsWith(name)))
  .sort()

// Steps of a campaign, and whether its environment remains.
const more = [...values.step.flatMap((step) => ['--step', step]), ...(values.keep ? ['--keep'] : [])]

const failed: string[] = []
for (const file of campaigns) {
  process.stdout.write(`\n== ${basename(file, '.ts')}\n`)
  const startedAt = Date.now()
  const { status } = spawnSync(process.execPath, [file, ...(values.short ? ['--short'] : []), ...more], {
    stdio: 'inherit',
  })
  process.stdout.write(
    `${status === 0 ? 'passed' : 'FAILED'} after ${Math.round((Date.now() - startedAt) / 1000)} s\n`,
  )
  if (status !== 0) failed.push(basename(file, '.ts'))
}

if (campaigns.length === 0) process.stderr.write(`no campaign is called ${positionals.join(' or ')}\n`)
process.stdout.write(
  `\nsoak: ${campaigns.length - failed.length} passed, ${failed.length} failed${failed.length > 0 ? `: ${failed.join(', ')}` : ''}\n`,
)
process.exitCode = failed.length > 0 || campaigns.length === 0 ? 1 : 0
