import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Cluster, programFolder, programs } from './environment.ts'

const profiles = 'GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TLS,GATEWAY-TCP'
/** One that the load balancer of the cluster can assign, and one that it cannot (RFC 5737). */
const addresses = ['-usable-address', '198.19.200.7', '-unusable-address', '192.0.2.99']
const project = ['-organization', 'tollgate', '-project', 'tollgate', '-url', 'https://tollgate.dev']
const limitMs = 3_000_000
const maxOutput = 256 * 1024 * 1024

/** The conformance suite of the Gateway API with the features that the status of the class claims. */
export async function conformance(cluster: Cluster): Promise<string> {
  const features = await cluster.kubectl(
    ...['get', 'gatewayclass', 'tollgate', '-o', 'jsonpath={.status.supportedFeatures[*].name}'],
  )
  const report = join(programFolder(), 'conformance.yaml')
  const args = [
    ...['-test.v', '-test.timeout', '45m', '-gateway-class', 'tollgate', '-conformance-profiles', profiles],
    ...['-supported-features', features.split(' ').join(','), '-report-output', report, '-version', 'main'],
    ...[...project, '-contact', 'https://tollgate.dev', ...addresses],
  ]
  const output = await run(join(programs(), 'conformance.test'), args, cluster)
  writeFileSync(join(programFolder(), 'conformance.log'), output)
  // Tests, not their parts, which are indented further.
  const results = [...output.matchAll(/^ {4}--- (PASS|FAIL|SKIP): TestConformance\/(\S+)/gm)]
  const named = (outcome: string) =>
    results.filter(([, found]) => found === outcome).map(([, , name]) => name)
  const failed = named('FAIL')
  const summary = `${named('PASS').length} passed, ${named('SKIP').length} skipped, report ${report}`
  if (failed.length > 0 || !/^PASS$/m.test(output))
    throw new Error(`conformance: ${failed.join(', ') || 'not finished'}; ${summary}`)
  return summary
}

/** The output of the suite, whatever its exit code. */
function run(program: string, args: readonly string[], { kubeconfig }: Cluster): Promise<string> {
  const env = { ...process.env, KUBECONFIG: kubeconfig }
  return new Promise((resolve) => {
    execFile(program, args, { env, maxBuffer: maxOutput, timeout: limitMs }, (_error, stdout, stderr) =>
      resolve(`${stdout}\n${stderr}`),
    )
  })
}
