import type { Path } from '../../schema/path.ts'
import type { ReportIssue } from '../../schema/report.ts'
import {
  carriesHttp,
  type Gateways,
  type ListenerPlan,
  listenersAt,
  type References,
  referencesOf,
} from './attachments.ts'

/** A route or section that attaches to gateways. */
export type Attaching = {
  references: References
  /** Path of the object that has `gateways`. */
  path: Path
  /** Protocol family that it needs. */
  needs: 'http' | 'tcp'
}

/** Reports references that do not resolve or have the wrong protocol; returns the listeners of the others. */
export function checkAttachment(
  { references, path, needs }: Attaching,
  gateways: Gateways,
  report: ReportIssue,
): ListenerPlan[] {
  const names = referencesOf(references, gateways)
  if (names === undefined) {
    report(path, 'gateways must be set, because no gateway is named default')
    return []
  }
  return names.flatMap((reference, index) => {
    const at: Path =
      references === undefined
        ? path
        : typeof references === 'string'
          ? [...path, 'gateways']
          : [...path, 'gateways', index]
    const listeners = listenersAt(reference, gateways)
    if (listeners === undefined) {
      const known = Object.keys(gateways)
      report(
        at,
        `unknown gateway reference ${reference}${known.length === 0 ? '' : `; there are ${known.join(', ')}`}`,
      )
      return []
    }
    const [gateway = ''] = reference.split('/')
    if (gateways[gateway]?.tunnelProtocol === 'connect') {
      report(at, `gateway ${gateway} accepts CONNECT requests and has no routes: use the gateways behind it`)
      return []
    }
    const fitting = listeners.filter((listener) => carriesHttp(listener) === (needs === 'http'))
    if (fitting.length === 0) {
      const kind =
        needs === 'http' ? 'supports HTTP: its protocol is' : 'supports TCP routes: its protocol is'
      report(at, `no listener of ${reference} ${kind} ${listeners[0]?.protocol ?? 'nothing'}`)
    }
    return fitting
  })
}
