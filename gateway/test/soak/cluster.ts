import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { currentCluster, isUp, root, stateFolder, tool, writeImages } from './cluster/environment.ts'
import { install } from './cluster/install.ts'
import { steps } from './cluster/steps.ts'

/**
 * Cluster mode on a real control plane, whose Pods are processes of this machine. `KUBE_TOOL` names the
 * folder of the tool that starts it; without it the campaign is skipped. Needs root.
 *
 *   npm run soak -- cluster --step refusal --step rollout --keep
 *
 * `--keep` leaves the cluster running, and a running cluster is used again.
 */

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    step: { type: 'string', multiple: true, default: [] },
    keep: { type: 'boolean', default: false },
    inside: { type: 'boolean', default: false },
  },
})

/** Steps of the short form. */
const shortSteps = ['refusal', 'rollout']

process.exitCode = await main()

async function main(): Promise<number> {
  const named = values.step
  const wanted = named.length > 0 ? named : values.short ? shortSteps : steps.map(({ name }) => name)
  const unknown = wanted.filter((name) => !steps.some((step) => step.name === name))
  if (unknown.length > 0) {
    process.stderr.write(`no step ${unknown.join(', ')}: use ${steps.map(({ name }) => name).join(', ')}\n`)
    return 1
  }
  if (values.inside) return runSteps(wanted)
  if (process.env['KUBE_TOOL'] === undefined) {
    process.stdout.write('skipped: KUBE_TOOL must name the folder of the control plane\n')
    return 0
  }
  return withCluster(wanted)
}

/** Starts the cluster, and this program again in its network. */
async function withCluster(wanted: readonly string[]): Promise<number> {
  process.chdir(root)
  try {
    if (!isUp()) {
      await writeImages()
      tool('up')
      tool('gateway-api')
    }
    const program = fileURLToPath(import.meta.url)
    const args = wanted.flatMap((name) => ['--step', name])
    const folder = process.env['KUBE_TOOL'] ?? ''
    const env = { ...process.env, TOLLGATE_KUBE_STATE: stateFolder() }
    const command = ['exec', process.execPath, program, '--inside', ...args]
    const { status } = spawnSync(join(folder, 'kube.sh'), command, { stdio: 'inherit', env })
    return status ?? 1
  } finally {
    if (!values.keep) tool('down')
  }
}

async function runSteps(wanted: readonly string[]): Promise<number> {
  const cluster = currentCluster()
  await install(cluster)
  const failed: string[] = []
  for (const step of steps.filter(({ name }) => wanted.includes(name))) {
    const startedAt = Date.now()
    process.stdout.write(`-- ${step.name}\n`)
    try {
      const report = await step.run(cluster)
      process.stdout.write(`   ${report}; ${Math.round((Date.now() - startedAt) / 1000)} s\n`)
    } catch (error) {
      failed.push(step.name)
      process.stdout.write(`   FAILED: ${error instanceof Error ? error.stack : String(error)}\n`)
    }
  }
  if (failed.length > 0) process.stdout.write(`failed steps: ${failed.join(', ')}\n`)
  return failed.length > 0 ? 1 : 0
}
