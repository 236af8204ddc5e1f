import { useParams } from 'wouter'
import { PolicyEditor } from '../policies/policy-editor.tsx'

/** One policy of the console itself. */
export default function ConsolePolicy() {
  const { name = '' } = useParams()
  return <PolicyEditor key={name} kind="ui.policy" name={name} path="/settings" />
}
