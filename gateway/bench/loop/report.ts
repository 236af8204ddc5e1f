import type { LoopResult } from './loop.ts'

const targetMs = 50

/** The figures as text, the longest stretches first. */
export function renderLoop({ cases, throughput }: LoopResult): string {
  const { alone, beside, worstBodies } = throughput
  const lines = cases
    .toSorted((one, other) => other.longestMs - one.longestMs)
    .map(
      ({ name, size, status, longestMs, tookMs }) =>
        `  ${longestMs.toFixed(1).padStart(7)} ${longestMs > targetMs ? 'over' : '    '} ${status} ${tookMs.toFixed(0).padStart(7)}  ${size.padEnd(6)} ${name}`,
    )
  return [
    `longest CPU time of the main thread without a turn of the event loop, ms (target ${targetMs}), and time of the request, ms`,
    ...lines,
    '',
    'requests/s of a client',
    `  alone ${alone.toFixed(0)}, beside ${worstBodies.toFixed(1)} bodies/s of 1.5 MiB that are the worst: ${beside.toFixed(0)} (${(alone / beside).toFixed(1)} times less)`,
    '',
  ].join('\n')
}
