import { checkCel } from '../../../cel/checked.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import { type AssumeRoleConfig, type AwsAuthConfig, sessionRoots } from './config.ts'
import { isSessionName, isTagText } from './session.ts'

/** Checks `backendAuth.aws` beyond its schema. */
export function checkAwsAuth(auth: AwsAuthConfig, report: ReportIssue): void {
  const { accessKeyId, secretAccessKey, sessionToken, region, assumeRole } = auth
  if (accessKeyId === undefined && secretAccessKey !== undefined)
    report(['accessKeyId'], 'must be set with secretAccessKey')
  if (accessKeyId !== undefined && secretAccessKey === undefined)
    report(['secretAccessKey'], 'must be set with accessKeyId')
  if (sessionToken !== undefined && accessKeyId === undefined)
    report(['sessionToken'], 'is only valid with accessKeyId and secretAccessKey')
  for (const key of ['accessKeyId', 'secretAccessKey', 'sessionToken'] as const) {
    const value = auth[key]
    if (value !== undefined && !/^[\x21-\x7e]+$/.test(value))
      report([key], 'must be printable ASCII without spaces')
  }
  if (region !== undefined && !isRegion(region)) report(['region'], 'must be a region such as us-east-1')
  if (assumeRole !== undefined)
    checkRole(assumeRole, (path, message) => report(['assumeRole', ...path], message))
}

/** Whether a text is a label of host names, as regions are. */
function isRegion(text: string): boolean {
  return /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text)
}

function checkRole({ roleArn, sessionName, tags = [] }: AssumeRoleConfig, report: ReportIssue): void {
  if (!/^arn:[a-z0-9-]+:iam::\d{12}:role\/[\x21-\x7e]+$/.test(roleArn))
    report(['roleArn'], 'must be the ARN of a role, such as arn:aws:iam::123456789012:role/gateway')
  if (typeof sessionName === 'string') {
    if (!isSessionName(sessionName))
      report(['sessionName'], 'must have 2 to 64 characters of letters, digits and _+=,.@-')
  } else if (sessionName !== undefined) {
    checkCel(sessionName.expression, sessionRoots, (message) =>
      report(['sessionName', 'expression'], message),
    )
  }
  const seen = new Set<string>()
  for (const [index, { key, value, expression }] of tags.entries()) {
    const at = (field: string) => ['tags', index, field]
    if (!isTagText(key, 128)) report(at('key'), 'must have 1 to 128 letters, digits, spaces and _.:/=+-@')
    if (seen.has(key)) report(at('key'), `duplicate key "${key}"`)
    seen.add(key)
    if ((value === undefined) === (expression === undefined))
      report(at('value'), 'must be set, or expression in its place')
    if (value !== undefined && value !== '' && !isTagText(value, 256))
      report(at('value'), 'must have at most 256 letters, digits, spaces and _.:/=+-@')
    if (expression !== undefined)
      checkCel(expression, sessionRoots, (message) => report(at('expression'), message))
  }
}
