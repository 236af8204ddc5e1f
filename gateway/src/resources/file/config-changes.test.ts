import { expect, it } from 'vitest'
import { changedParts, maskedChange } from './config-changes.ts'

function configOf(args: readonly string[]) {
  return { mcp: { targets: [{ name: 'files', stdio: { cmd: 'serve', args } }] } }
}

it('a change of an argument after a credential flag displays no secret', () => {
  const [before, after] = [
    configOf(['--token', 'swordfish', '/data']),
    configOf(['--token', 'marlin', '/data']),
  ]
  const changes = [...changedParts(before, after)].map(maskedChange)
  expect(changes).not.toHaveLength(0)
  expect(JSON.stringify(changes)).not.toMatch(/swordfish|marlin/)
})

it('a change of another argument displays the argument alone', () => {
  const changes = [...changedParts(configOf(['/data', '/tmp']), configOf(['/data', '/srv']))]
  expect(changes.map(maskedChange)).toEqual([
    { path: 'mcp.targets[0].stdio.args[1]', after: '/srv' },
    { path: 'mcp.targets[0].stdio.args[1]', before: '/tmp' },
  ])
})
