import { useParams } from 'wouter'
import { PolicyEditor } from './policy-editor.tsx'

/** One policy of LLM requests. */
export default function LlmPolicy() {
  const { name = '' } = useParams()
  return <PolicyEditor key={name} kind="llm.policy" name={name} path="/llm/policies" />
}
